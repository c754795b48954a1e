"""What an operator, a hypervisor or a damaged disk may give to `appliance.model`.

See support/fuzzing/fuzzing.py.
"""

import base64
import gzip
import json
from unicodedata import category

import pytest
from support.fuzzing.fuzzing import Target, fuzz, round_trip
from support.machines import ovf
from support.values import snapshots
from support.values.annotated import EXAMPLE
from support.values.keys import ED25519

from appliance.model.document.document import read
from appliance.model.document.tree import DocumentError
from appliance.model.guest.appliance_settings import guest_settings, property_reader, unpack
from appliance.model.guest.machine_settings import machine, on_adapters
from appliance.model.guest.networks import Role
from appliance.model.guest.properties import BY_KEY, misspelt
from appliance.model.loading.loading import load
from appliance.model.snapshot import snapshot
from appliance.model.snapshot.snapshot import SnapshotError
from appliance.wire import ovf_environment
from appliance.wire.ovf_environment import OvfEnvironmentError

pytestmark = pytest.mark.pure

EVERY_KEY = EXAMPLE.read_bytes()
SMALL = b"""\
cluster: { name: ocp4, domain: example.com }
api:
  frontends:
    kube-api: { bind: ["[::]:9445"], pool: masters, allow: [10.0.0.0/8], keepalive: off }
pools:
  masters:
    check: &c { type: https, path: /readyz, interval: 5s, expect: 200-399 }
    servers: { master-0: { address: "10.0.0.34:6443", check: *c } }
virtual_ips:
  api: { addresses: [10.0.0.200/24], interface: e, router_id: auto, track: { t: { tcp: "a:1" } } }
"""
YAML_WORDS = (
    *(
        b"- ",
        b": ",
        b"&a ",
        b"*a",
        b"!!",
        b"!x ",
        b"|\n",
        b">-\n",
        b"? ",
        b"<<: ",
        b"---\n",
        b"...\n",
        b"%YAML 1.1\n",
    ),
    *(
        b"\t",
        b"#",
        b"'",
        b"~",
        b"0x",
        b"1_000",
        b".inf",
        b"2026-01-01",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\\ud800",
    ),
    *(
        b"9" * 400,
        b"[" * 100,
        b"{a: " * 100,
        b"  " * 100,
        b"off",
        b"30s",
        b"10.0.0.0/8",
        b"[::1]:80",
        b"&a [*a]",
    ),
)
GIVEN = {
    "hostname": "lb-1.example.com",
    "address": "10.0.0.11/24",
    "gateway": "10.0.0.1",
    "dns": "10.0.0.2, 10.0.0.3",
    "ntp": "pool.ntp.org",
    "ssh_key": ED25519,
    "cluster_name": "ocp4",
    "cluster_domain": "example.com",
    "masters": "10.0.0.34, 10.0.0.99",
    "routers": "infra-0.example.com",
    "api_vip": "10.0.0.200",
    "ingress_vip": "10.0.0.201",
    "vrrp_peers": "10.0.0.11, 10.0.0.12",
    "vrrp_priority": "110",
}
PACKED = base64.b64encode(gzip.compress(SMALL))


def configuration(data: bytes) -> None:
    """Demand a snapshot or errors, each with a place, and of a snapshot that programs can read it."""
    loaded = load(data, source="a.yaml", number=1)
    assert (loaded.snapshot is None) == bool(loaded.errors)
    assert all(each.line and each.column for each in loaded.problems)
    assert not any(
        category(each) in {"Cc", "Cf", "Cs"} for problem in loaded.problems for each in str(problem)
    )
    if loaded.snapshot is not None:
        assert snapshot.decode(snapshot.encode(loaded.snapshot)) == loaded.snapshot


def properties(data: bytes) -> None:
    """Demand of what a form says a configuration that loads, or problems."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        return
    texts = {str(key): str(value) for key, value in said.items()}
    assert all(isinstance(each, str) for each in misspelt(texts))
    _settle(texts)


def environment(data: bytes) -> None:
    """Demand the same of a whole OVF environment."""
    assert all(isinstance(each, str) for each in ovf_environment.adapters(data))
    _settle(ovf_environment.parse(data))


_ADAPTERS = {Role.CLIENTS: "ens192", Role.SERVERS: "ens224", Role.MANAGEMENT: "ens256", Role.VRRP: "ens161"}


def _settle(texts: dict[str, str]) -> None:
    reader = property_reader(texts)
    wanted = on_adapters(reader, machine(reader), len(_ADAPTERS))
    found = guest_settings(reader, wanted, interfaces=("ens192",), of_networks=_ADAPTERS)
    if found.yaml is not None:
        assert load(found.yaml, source="x", number=1).snapshot is not None
    assert found.refused is None or found.problems
    assert all(each.message for each in found.problems)


def packed(data: bytes) -> None:
    """Demand of a packed configuration that it is bounded."""
    assert len(unpack(data.decode(errors="surrogateescape"))) <= 1 << 20


TARGETS = (
    Target(
        name="yaml",
        run=read,
        seeds=(SMALL, EVERY_KEY),
        errors=(DocumentError,),
        words=YAML_WORDS,
        seconds=10.0,
    ),
    Target(
        name="json",
        run=read,
        seeds=(json.dumps({"pools": {"p": {"servers": {"s": {"address": "a:1"}}}}}, indent=1).encode(),),
        errors=(DocumentError,),
        words=YAML_WORDS,
        seconds=10.0,
    ),
    Target(
        name="configuration", run=configuration, seeds=(SMALL,), words=YAML_WORDS, seconds=10.0, longest=4096
    ),
    Target(
        name="snapshot",
        run=round_trip(snapshot.decode, snapshot.encode),
        seeds=(
            snapshot.encode(snapshots.snapshot(virtual_routers=(snapshots.virtual_router(),))),
            snapshot.encode(snapshots.snapshot()),
        ),
        errors=(SnapshotError,),
        words=(b"null", b"-1", b"1e400", b"9" * 30, b"[" * 2000, b'{"a":' * 2000, b"\xff", b'"\\ud800"'),
    ),
    Target(
        name="guest-properties",
        run=properties,
        seeds=(json.dumps(GIVEN).encode(), json.dumps({"lb.config.1": PACKED.decode()}).encode()),
        words=(*(f'"lb.{key}": "'.encode() for key in BY_KEY), b"10.0.0.0/8", b"::1", b"/33", b"\\ufeff"),
        seconds=10.0,
        longest=4096,
    ),
    Target(
        name="guest-environment",
        run=environment,
        seeds=(ovf.environment({f"lb.{key}": value for key, value in GIVEN.items()}),),
        errors=(OvfEnvironmentError,),
        seconds=10.0,
    ),
    Target(
        name="packed-config", run=packed, seeds=(PACKED, base64.b64encode(SMALL), SMALL), errors=(ValueError,)
    ),
)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_no_input_breaks_a_reader(target: Target, fuzz_seconds: float, fuzz_seed: int):
    """Any bytes are understood, or refused in words that say where; soon, in little room."""
    assert fuzz(target, seconds=fuzz_seconds, seed=fuzz_seed) > len(target.seeds)
