"""Virtual servers as Debian's keepalived reads them: what it leaves out with a word, we leave out, too.

There is no IPVS on every machine, and without it keepalived does not say what it has understood, only what
it has not.
"""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from support.run import tools
from support.translation.keepalived_files import told, translated
from support.translation.virtual_servers import refusals

from appliance.translation.keepalived.reader import translate
from appliance.translation.translation import Outcome, Translation

pytestmark = [pytest.mark.programs, pytest.mark.needs("keepalived")]

CORPUS: Final = Path(__file__).parents[2] / "translation" / "corpus" / "keepalived"

_SAID: Final = re.compile(r"\((?:\S+: )?Line (\d+)\) (?!number|negative|nb_get_retry is deprecated)")

SLIPS: Final = """\
virtual_server 192.0.2.150 6443 {
    delay_loop 0
    lb_algo xx
    lb_kind nat
    nat_mask 255.255.255.0
    protocol XX
    protocol tcp
    retry 0
    connect_timeout 0
    delay_before_retry -1
    quorum 0
    persistence_timeout 0
    persistence_granularity 255.255.255.0
    weight 0
    uthreshold 3
    inhibit_on_failure
    real_server 192.0.2.11 6443 {
        weight -1
        inhibit_on_failure maybe
        HTTP_GET {
            url {
                path /x
                status_code 200 301-303
                bla
            }
            nb_get_retry 3
            connect_port 0
            retry 0
        }
        TCP_CHECK {
            nb_get_retry 3
            connect_timeout 0
        }
    }
}
"""

EVERY_WORD: Final = """\
virtual_server 192.0.2.150 6443 {
    ip_family inet
    delay_loop 1.5
    delay_before_retry 0
    retry 4
    warmup 0
    connect_timeout 2
    lvs_sched sh
    sh-port
    sh-fallback
    lvs_method NAT
    persistence_timeout
    persistence_granularity 255.255.255.255
    protocol TCP
    ha_suspend
    smtp_alert false
    virtualhost www.example
    alpha
    omega
    quorum 1
    hysteresis 0
    weight 2
    inhibit_on_failure
    sorry_server 192.0.2.99 80
    sorry_server_inhibit
    sorry_server_lvs_method NAT
    real_server 192.0.2.11 6443 {
        weight 3
        lvs_method NAT
        uthreshold 0
        lthreshold 0
        inhibit_on_failure on
        alpha off
        smtp_alert off
        virtualhost a.example
        connect_timeout 2
        retry 1
        SSL_GET {
            http_protocol 1.1
            enable_sni
            fast_recovery
            virtualhost b.example
            bindto 192.0.2.1
            connect_ip 192.0.2.12
            connect_port 443
            retry 0
            log_all_failures
            url {
                path /
                virtualhost c.example
                status_code 200-299 404
            }
        }
    }
}
"""


def complained(path: Path) -> set[int]:
    """Return the lines of which keepalived says that it cannot use them."""
    command = [tools.path("keepalived") or "keepalived", "--config-test", f"--use-file={path}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return {int(each[1]) for each in map(_SAID.match, run.stderr.splitlines()) if each}


def left_out(translation: Translation) -> set[int]:
    """Return the lines that we leave out because keepalived does."""
    return {line for line, _, why in told(translation, Outcome.CHANGED) if "keepalived" in why}


def test_slips(tmp_path: Path):
    """What keepalived complains of and goes on without is what we leave out with a word, line by line."""
    path = tmp_path / "k.conf"
    path.write_text(SLIPS)
    translation = translated(SLIPS)
    # A check that asks no more than another one is left out with all of its lines.
    unused = {line for line, _, why in told(translation, Outcome.IGNORED) if "TCP_CHECK" in why}

    assert refusals(translation) == []
    assert complained(path)
    assert complained(path) == left_out(translation) | (unused & complained(path))


def test_every_word(tmp_path: Path):
    """Each word that we understand is one of keepalived's."""
    path = tmp_path / "k.conf"
    path.write_text(EVERY_WORD)
    translation = translated(EVERY_WORD)

    assert complained(path) == set()
    assert (refusals(translation), left_out(translation)) == ([], set())


@pytest.mark.parametrize("name", ["virtual-server-nat", "virtual-server-k0s"])
def test_files_of_the_corpus(name: str):
    """In files as people have them, too; their interfaces are not on this machine."""
    path = CORPUS / f"{name}.conf"
    first = next(at for at, line in enumerate(path.read_text().splitlines(), 1) if "virtual_server" in line)
    found = translate(
        str(path),
        read=lambda each: Path(each).read_bytes(),
        matching=lambda _: [],
        hostname="lb1",
        environment={},
        programs=(),
    )
    assert refusals(found) == []
    assert {each for each in complained(path) if each >= first} == left_out(found)
