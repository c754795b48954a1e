"""Damaged files of HAProxy: each line has its word, and what comes out is a configuration.

See support/fuzzing/fuzzing.py. `make fuzz`, and E2E_FULL=1, read a million damaged lines.
"""

import os
from pathlib import Path
from random import Random
from typing import Final

import pytest
from support.fuzzing.fuzzing import Target, fuzz
from support.fuzzing.mutation import Mutator
from support.openshift.openshift_templates import RELEASES, haproxy_cfg
from support.translation.haproxy_files import NO_FILES

from appliance.model.config.configuration import Config
from appliance.model.document.tree import plain
from appliance.translation.haproxy.directives.global_table import GLOBAL
from appliance.translation.haproxy.directives.proxy_table import PROXY
from appliance.translation.haproxy.directives.servers import KEYWORDS
from appliance.translation.haproxy.reader import translate

pytestmark = pytest.mark.pure

CORPUS: Final = Path(__file__).parents[1] / "translation" / "corpus" / "haproxy"
MILLION: Final = 1_000_000


def read(data: bytes) -> None:
    """Read a file; each of its lines that says anything has an outcome, and each of our keys is valid."""
    found = translate(data, source="haproxy.cfg", environment={"A": "1"}, read=NO_FILES)
    Config.model_validate(plain(found.root))
    rows = data.decode(errors="replace").split("\n")
    told = {each.place.line for each in found.lines}
    assert told <= set(range(1, len(rows) + 1))
    for number, row in enumerate(rows, 1):
        bare = row.partition("\0")[0].strip(" \t\v\f\r")
        assert not bare or bare.startswith("#") or number in told, row


HAPROXY_CFG: Final = Target(
    name="haproxy-cfg",
    run=read,
    seeds=(
        *(path.read_bytes() for path in sorted(CORPUS.glob("*.cfg"))),
        *(haproxy_cfg(release).encode() for release in RELEASES.values()),
    ),
    words=tuple(f" {name} ".encode() for name in (*PROXY, *GLOBAL, *KEYWORDS)),
)


RULES: Final = b"""defaults
  timeout client 1m
frontend f
  bind :1
  acl lan src -f /etc/lan
  tcp-request connection reject if !lan !{ src 10.0.0.0/8 }
  tcp-request content accept if { src 192.0.2.0/24 } or lan
  tcp-request content reject unless { src -m ip -- 10.0.0.1/8 }
  default_backend b
backend b
  tcp-request content reject if { src -f /etc/lan 2001:db8::/32 }
  server s 10.0.0.1:1
listen stats
  bind :2
  mode http
  stats uri /lb?stats
  stats auth a:b
  monitor-uri /healthz
  http-request deny unless { src -f /etc/lan }
"""
NETWORKS: Final = b"# nodes\n\n  10.0.0.0/8\r\n192.0.2.7/24\n10.0.0.0/255.0.0.0\n2001:db8::1\n"


def read_rules(data: bytes) -> None:
    """Read a file whose rules name a list, both of them damaged."""
    rules, _, networks = data.partition(b"\0")
    found = translate(rules, source="haproxy.cfg", environment={}, read=lambda _: networks)
    Config.model_validate(plain(found.root))


ACCESS_RULES: Final = Target(
    name="haproxy-access-rules", run=read_rules, seeds=(RULES + b"\0" + NETWORKS,), words=HAPROXY_CFG.words
)


def test_no_rule_and_no_list_breaks_the_reader(fuzz_seconds: float, fuzz_seed: int):
    """Every damaged pair is read to its end."""
    assert fuzz(ACCESS_RULES, seconds=fuzz_seconds, seed=fuzz_seed) > len(ACCESS_RULES.seeds)


def test_no_file_breaks_the_reader(fuzz_seconds: float, fuzz_seed: int):
    """Every damaged file is read to its end."""
    assert fuzz(HAPROXY_CFG, seconds=fuzz_seconds, seed=fuzz_seed) > len(HAPROXY_CFG.seeds)


def test_a_million_damaged_lines(fuzz_seconds: float, fuzz_seed: int):
    """As the first test, counted in lines."""
    if fuzz_seconds < 1.0 and not os.environ.get("E2E_FULL"):
        pytest.skip("a million lines take a minute: make fuzz, or E2E_FULL=1")
    random = Random(fuzz_seed)  # noqa: S311  # has to be the same again
    lines = 0
    for data in Mutator(random, HAPROXY_CFG.seeds, words=HAPROXY_CFG.words, longest=16384):
        read(data)
        lines += data.count(b"\n")
        if lines >= MILLION:
            return
