"""Damaged files of keepalived: each line has its word, and what comes out are virtual IPs or located errors.

See support/fuzzing/fuzzing.py. `make fuzz`, and E2E_FULL=1, read a million damaged lines.
"""

import os
from pathlib import Path
from random import Random
from typing import Final

import pytest
from support.fuzzing.fuzzing import Target, fuzz
from support.fuzzing.mutation import Mutator
from support.openshift.openshift_templates import RELEASES, keepalived_conf

from appliance.translation.combined_files import load_together
from appliance.translation.keepalived.meaning.globals import DEFAULTS
from appliance.translation.keepalived.meaning.instance_directives import INSTANCE
from appliance.translation.keepalived.reader import translate
from appliance.translation.keepalived.virtual_servers.real_server import REAL_SERVER
from appliance.translation.keepalived.virtual_servers.virtual_server import VIRTUAL_SERVER
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

CORPUS: Final = Path(__file__).parents[1] / "translation" / "corpus" / "keepalived"
MILLION: Final = 1_000_000

ADVANCED: Final = b"""\
$PRIO=100
$VIP= \\
  vrrp_instance VI_${N} { \\
    interface eth${N} \\
    virtual_router_id ${N} \\
    @lb1 priority $PRIO \\
    virtual_ipaddress { 10.0.${N}.1/24 \\
    } \\
  }
~SEQ(N,1,3) $VIP
~LST({A, B}, {x,1},{y,2}) @^lb1 include ${A}${B}.conf
include conf.d/*.conf
vrrp_script chk { script 'pidof "haproxy"' # alive
  interval 2 }
vrrp_script own { script /etc/check.sh }
"""
SCRIPTS: Final = tuple(path.read_bytes() for path in sorted((CORPUS / "scripts").iterdir()))
OWN: Final = b"\nvrrp_script own { script /etc/check.sh }\n"


def read(data: bytes) -> None:
    """Read a file; each of its lines that says anything has an outcome, and later errors have a place."""

    def give(path: str) -> bytes:
        if path == "k.conf":
            return data
        if path.startswith("/"):
            return b"#!/bin/sh\n" + data  # a check that is the same text again, and is read as a script
        if path == "conf.d/a.conf":
            return b"vrrp_script a {\nscript /a\n}\n"
        raise FileNotFoundError(2, "No such file")

    found = translate(
        "k.conf",
        read=give,
        matching=lambda _: ["conf.d/a.conf"],
        hostname="lb1",
        environment={"A": "1"},
        programs=("proxy-api",),
    )
    rows = data.decode(errors="replace").split("\n")
    told = {each.place.line for each in found.lines if each.place.source == "k.conf"}
    assert told <= set(range(1, len(rows) + 1))
    refused = any(each.outcome is Outcome.REFUSED for each in found.lines)
    cut = any("the rest is not read" in (each.reason or "") for each in found.lines)
    for number, row in enumerate(rows, 1):
        bare = row.strip(" \t\r")
        assert not bare or bare[0] in "#!" or cut or number in told, row
    assert all((each.text + (each.reason or "")).isprintable() for each in found.lines)
    loaded = load_together(None, [found], source="a.yaml", number=1)
    assert loaded.errors or not refused
    assert all((each.line and each.column) or "not shown" in each.message for each in loaded.errors)


KEEPALIVED_CONF: Final = Target(
    name="keepalived-conf",
    run=read,
    seeds=(
        ADVANCED,
        *(OWN + each for each in SCRIPTS),
        *(path.read_bytes() for path in sorted(CORPUS.glob("*.conf"))),
        *(keepalived_conf(release).encode() for release in RELEASES.values()),
    ),
    words=(
        *(f"\n{name} ".encode() for name in (*INSTANCE, *DEFAULTS, *VIRTUAL_SERVER, *REAL_SERVER)),
        *(
            b"virtual_server 192.0.2.1 80 {\nprotocol TCP\n",
            b"url {\npath /",
            b"misc_path 'nc -z 192.0.2.1 80'",
            b"virtual_routes {\ndefault via 192.0.2.1 dev eth0 onlink table 1",
            b"virtual_rules {\nfrom fd00::1 table main",
        ),
        *(b"{", b"}", b'"', b"'", b"\\\n", b"\\", b"$A=", b"${A}", b"$A ", b"@lb1 ", b"@^", b"#", b"!"),
        *(b"~SEQ(N,1,", b"~LST(", b"include ", b"reverse", b"weight 0", b"9" * 400, b"{" * 400, b"\0"),
        *(b"$(", b"`", b"&&", b"||", b"if ", b"fi", b'""', b"curl -f http://localhost", b"</dev/tcp/a/1"),
    ),
    seconds=10.0,
)


def test_no_file_breaks_the_reader(fuzz_seconds: float, fuzz_seed: int):
    """Every damaged file is read to its end."""
    assert fuzz(KEEPALIVED_CONF, seconds=fuzz_seconds, seed=fuzz_seed) > len(KEEPALIVED_CONF.seeds)


def test_a_million_damaged_lines(fuzz_seconds: float, fuzz_seed: int):
    """As the first test, counted in lines."""
    if fuzz_seconds < 1.0 and not os.environ.get("E2E_FULL"):
        pytest.skip("a million lines take minutes: make fuzz, or E2E_FULL=1")
    random = Random(fuzz_seed)  # noqa: S311  # has to be the same again
    lines = 0
    for data in Mutator(random, KEEPALIVED_CONF.seeds, words=KEEPALIVED_CONF.words, longest=16384):
        read(data)
        lines += data.count(b"\n")
        if lines >= MILLION:
            return
