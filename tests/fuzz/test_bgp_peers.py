"""Damaged files of BGP peers: what is not refused is a configuration, and each problem has its place.

See support/fuzzing/fuzzing.py.
"""

from typing import Final

import pytest
from support.fuzzing.fuzzing import Target, fuzz
from support.openshift.peers_file import PEERS, peers_file

from appliance.model.document.document import read
from appliance.model.document.tree import DocumentError
from appliance.translation.bgp_peers import translate
from appliance.translation.combined_files import load_together
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

OWN: Final = read("bgp: { engine: table }\n")


def judged(data: bytes) -> None:
    """Read a file for two nodes; what is refused for one is refused for the other."""
    refused = set()
    for hostname in ("master-0", "master-1.example.com"):
        found = translate(read(data), source="peers.json", hostname=hostname)
        assert all((each.text + (each.reason or "")).isprintable() for each in found.lines)
        loaded = load_together(OWN, [found], source="a.yaml", number=1)
        assert all(each.source and each.line for each in loaded.errors if "are not shown" not in each.message)
        outcomes = frozenset(each for each in found.lines if each.outcome is Outcome.REFUSED)
        assert bool(loaded.errors) >= bool(outcomes)
        refused.add(outcomes)
    assert len(refused) == 1


TARGET: Final = Target(
    name="bgp-peers",
    run=judged,
    seeds=(peers_file(), peers_file(hostOverrides=None, communities=None), peers_file(apiVIPs=[])),
    errors=(DocumentError,),
    words=(
        *(f'"{key}":'.encode() for key in PEERS),
        *(b'"hostOverrides": {', b"null", b'""', b'"90s"', b'"true"', b"[[[[", b"\\u0000", b"1e999", b"\xff"),
    ),
)


def test_no_file_of_peers_breaks_the_reader(fuzz_seconds: float, fuzz_seed: int):
    """Nothing but the error of a document escapes."""
    assert fuzz(TARGET, seconds=fuzz_seconds, seed=fuzz_seed) > 0
