"""FRR and BIRD understand what they are given, for each kind of session; the real ones judge."""

import subprocess
from pathlib import Path

import pytest
from support.run import tools
from support.values.shared_ips import bgp, neighbor, shared_ip

from appliance.model.snapshot.shared_ip import Engine, Neighbor
from appliance.wire.bgp_examples.bird_example import bird_example
from appliance.wire.bgp_examples.frr_example import frr_example

pytestmark = pytest.mark.programs

SHARED = (shared_ip(communities=("64512:100",)), shared_ip("web_2.b", neighbors=("tor-a",)))
NEIGHBORS = [
    neighbor(),
    neighbor(address="fd00::1", port=1179, bfd=None, hold=30, password_file="/etc/bgp.pass"),  # noqa: S106  # a path
    neighbor(address="fe80::1%lo", ttl_security=True),
    neighbor(address="10.9.0.1", multihop=2),
    neighbor(address="10.9.0.1", multihop=2, ttl_security=True),
    neighbor(address="10.9.0.2", asn=64512),
]


@pytest.mark.needs("vtysh")
@pytest.mark.parametrize("given", NEIGHBORS, ids=lambda each: each.address)
def test_frr_knows_each_line(tmp_path: Path, given: Neighbor):
    """Its own syntax check names the line otherwise."""
    file = tmp_path / "frr.conf"
    file.write_text(frr_example(bgp(given, engine=Engine.TABLE), SHARED, router_id="10.0.0.11"))
    words = [tools.path("vtysh") or "vtysh", "--dryrun", "--inputfile", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.needs("bird")
@pytest.mark.parametrize("given", NEIGHBORS, ids=lambda each: each.address)
def test_bird_accepts_it(tmp_path: Path, given: Neighbor):
    """It parses the whole file."""
    file = tmp_path / "bird.conf"
    sources = {} if "%" in given.address else {"tor-a": "fd00::2" if ":" in given.address else "10.0.0.11"}
    by = bgp(given, engine=Engine.TABLE)
    file.write_text(bird_example(by, SHARED, router_id="10.0.0.11", sources=sources))
    words = [tools.path("bird") or "bird", "-p", "-c", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
