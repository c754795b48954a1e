"""OpenShift's frr-peers.json as `shared_ips` and `bgp`: which node has which peers, and what is refused."""

import json

import pytest
from support.openshift.peers_file import PEERS, peers_file

from appliance.model.document.document import read
from appliance.model.document.tree import plain
from appliance.model.loading.loading import Loaded
from appliance.model.snapshot.shared_ip import Bfd, Engine
from appliance.model.snapshot.snapshot import Snapshot
from appliance.translation.bgp_peers import translate
from appliance.translation.combined_files import changes, load_together
from appliance.translation.translation import Translation

pytestmark = pytest.mark.pure

OWN = "bgp: { engine: table }\nlinger: { key: '0123456789abcdef0123456789abcdef', peers: [192.0.2.12] }\n"


def translated(content: bytes, *, hostname: str = "master-0") -> Translation:
    """Return what a file says for a node."""
    return translate(read(content), source="frr-peers.json", hostname=hostname)


def loaded(content: bytes, *, own: str = OWN, hostname: str = "master-0") -> Loaded:
    """Return what a file and our YAML are together."""
    return load_together(read(own), [translated(content, hostname=hostname)], source="a.yaml", number=1)


def snapshot(content: bytes, *, own: str = OWN, hostname: str = "master-0") -> Snapshot:
    """Return the same without an error."""
    found = loaded(content, own=own, hostname=hostname)
    assert found.snapshot is not None, found.errors
    return found.snapshot


def problems(content: bytes) -> list[str]:
    """Return the messages of all errors, each of which has its file and line."""
    errors = loaded(content).errors
    assert all((each.source, bool(each.line)) == ("frr-peers.json", True) for each in errors)
    return [each.message for each in errors]


def test_addresses_and_peers():
    """Virtual IPs are shared addresses with the communities; peers are neighbours with their settings."""
    made = snapshot(peers_file())
    assert [(each.name, each.addresses, each.communities) for each in made.shared_ips] == [
        ("api", ("198.51.100.5/32", "2001:db8:10::5/128"), ("64512:100",)),
        ("ingress", ("198.51.100.4/32",), ("64512:100",)),
    ]
    assert made.bgp is not None
    assert (made.bgp.engine, made.bgp.asn) == (Engine.TABLE, 64512)
    first, second = made.bgp.neighbors
    assert (first.name, first.address, first.asn, first.port) == ("192.0.2.1", "192.0.2.1", 64600, 179)
    assert (first.password, first.hold, first.multihop) == ("s3cret", 90, None)
    assert first.bfd == Bfd(interval=0.3, multiplier=3)
    assert (second.name, second.address, second.port) == ("2001-db8--1", "2001:db8::1", 1179)
    assert (second.password, second.bfd, second.multihop) == (None, None, 255)


@pytest.mark.parametrize(
    ("hostname", "peers"),
    [
        ("master-1", ["192.0.2.65"]),
        ("master-1.ocp4.example.com", ["192.0.2.65"]),
        ("master-2", ["192.0.2.1", "2001:db8::1"]),
    ],
)
def test_peers_of_a_host(hostname: str, peers: list[str]):
    """A host of `hostOverrides` has its own peers, by its short name too; others have the default ones."""
    bgp = snapshot(peers_file(), hostname=hostname).bgp
    assert bgp is not None
    assert [each.address for each in bgp.neighbors] == peers


def test_our_yaml_completes_it():
    """Tracks are ours; what both set is an error with both places."""
    track = "shared_ips: { ingress: { track: { router: { http: 'http://localhost:1936/healthz' } } } }\n"
    api, ingress = snapshot(peers_file(), own=OWN + track).shared_ips
    assert [len(each.track) for each in (api, ingress)] == [0, 1]
    (error,) = loaded(peers_file(), own=OWN.replace("engine", "asn: 64999, engine")).errors
    assert (error.path, error.message) == (
        "bgp.asn",
        "frr-peers.json sets this too, on line 2: remove it from one of them",
    )


@pytest.mark.parametrize("unset", [None, ""])
def test_unset_values(unset: str | None):
    """As for OpenShift's programs, null, an empty text and port 0 set nothing."""
    peer = dict.fromkeys(["password", "bfdEnabled", "ebgpMultiHop", "holdTime", "keepaliveTime"], unset)
    given = {**PEERS, "apiVIPs": unset, "hostOverrides": unset, "communities": unset}
    given["defaultPeers"] = [{**peer, "peerAddress": "192.0.2.1", "peerASN": 64600, "port": 0}]
    made = snapshot(json.dumps(given).encode())
    assert [(each.name, each.communities) for each in made.shared_ips] == [("ingress", ())]
    assert made.bgp is not None
    (neighbor,) = made.bgp.neighbors
    assert (neighbor.password, neighbor.port, neighbor.hold, neighbor.bfd) == (None, 179, 9, None)


@pytest.mark.parametrize(
    ("timers", "changed"),
    [
        ({"holdTime": "90", "keepaliveTime": "30"}, False),
        ({"holdTime": "90s", "keepaliveTime": "30s"}, False),
        ({"holdTime": "90"}, False),
        ({"holdTime": "90", "keepaliveTime": "10"}, True),
        ({"keepaliveTime": "30"}, True),
    ],
)
def test_another_keepalive_time_is_a_warning(timers: dict[str, str], *, changed: bool):
    """Keepalives are sent every third of the hold time; a file that says something else is used."""
    content = peers_file(defaultPeers=[{"peerAddress": "192.0.2.1", "peerASN": 64600, **timers}])
    warnings = [(each.source, each.line, each.message) for each in changes([translated(content)])]
    reason = "the time between keepalives is a third of the hold time here"
    line = 6 + len(timers)
    said = ("frr-peers.json", line, f"`defaultPeers[0].keepaliveTime`: {reason}")
    assert warnings == ([said] if changed else [])
    assert snapshot(content).bgp


@pytest.mark.parametrize(
    ("peer", "said"),
    [
        (
            {"peerAddress": "tor-a"},
            "`defaultPeers[0].peerAddress`: must be an address such as `10.0.0.34`, not `tor-a`",
        ),
        (
            {"peerAddress": "fe80::1"},
            "`defaultPeers[0].peerAddress`: `fe80::1` is link-local: add its interface, `fe80::1%ens192`",
        ),
        ({"peerAddress": None}, "`defaultPeers[0].peerAddress`: is missing"),
        ({"peerASN": None}, "`defaultPeers[0].peerASN`: is missing"),
        (
            {"peerASN": "x"},
            "`defaultPeers[0].peerASN`: must be the number of an autonomous system, 1 to 4294967294, not `x`",
        ),
        (
            {"password": "file:/etc/shadow"},
            "`defaultPeers[0].password`: begins with `file:`, which names a file here",
        ),
        ({"port": 65536}, "`defaultPeers[0].port`: must be a port, 1 to 65535, not `65536`"),
        (
            {"bfdEnabled": True},
            '`defaultPeers[0].bfdEnabled`: must be `"true"` or `"false"`, not `true`',
        ),
        ({"ebgpMultiHop": "2"}, '`defaultPeers[0].ebgpMultiHop`: must be `"true"` or `"false"`, not `2`'),
        (
            {"holdTime": "1m30s"},
            '`defaultPeers[0].holdTime`: must be whole seconds as text, such as `"90"`, not `1m30s`',
        ),
        (
            {"keepaliveTime": 30},
            '`defaultPeers[0].keepaliveTime`: must be whole seconds as text, such as `"90"`, not `30`',
        ),
        ({"holdTime": "1"}, "`defaultPeers[0].holdTime`: `1s` is too short: at least `3s`"),
        (
            {"bfdenabled": "true"},
            "`defaultPeers[0].bfdenabled`: is no key of this file: did you mean `bfdEnabled`?",
        ),
        ({"xyz": 1}, "`defaultPeers[0].xyz`: is no key of this file"),
    ],
)
def test_refused_in_a_peer(peer: dict[str, object], said: str):
    """Each key that has no equivalent is an error that names it."""
    whole = {"peerAddress": "192.0.2.1", "peerASN": 64600, **peer}
    given = {key: each for key, each in whole.items() if each is not None}
    assert problems(peers_file(defaultPeers=[given])) == [said]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"localASN": None}, "`localASN`: is missing"),
        ({"localASN": 0}, "`localASN`: 0 is reserved: private ones are 64512 to 65534, "),
        ({"apiVIPs": ["api"]}, "`apiVIPs[0]`: must be an address such as `10.0.0.34`, not `api`"),
        ({"ingressVIPs": "198.51.100.4"}, "`ingressVIPs`: must be a list, not `198.51.100.4`"),
        (
            {"communities": ["1:2:3"]},
            '`communities[0]`: must be a community such as `"64512:100"`, not `1:2:3`',
        ),
        ({"defaultPeers": [5]}, "`defaultPeers[0]`: must be a mapping, not `5`"),
        (
            {"defaultPeers": [{"peerAddress": "192.0.2.1", "peerASN": 64600}] * 2},
            "`defaultPeers[1].peerAddress`: is in this list twice",
        ),
        ({"hostOverrides": []}, "`hostOverrides`: must be a mapping, not a list"),
        (
            {"hostOverrides": {"master-9": [{"peerAddress": "192.0.2.1", "peerASN": 0}]}},
            "`hostOverrides.master-9[0].peerASN`: 0 is reserved: private ones are 64512 to 65534, ",
        ),
        ({"peers": []}, "`peers`: is no key of this file"),
    ],
)
def test_refused_in_the_file(changes: dict[str, object], said: str):
    """So is each key besides, of other hosts too, as all nodes have the same file."""
    (error,) = problems(peers_file(**changes))
    assert error.startswith(said)


def test_an_address_of_both_is_refused():
    """What our own rules say of the addresses names the place in the file."""
    assert problems(peers_file(apiVIPs=["198.51.100.4"])) == [
        "`198.51.100.4/32` is listed twice, first as shared_ips.api.addresses[0]"
    ]


def test_nothing_of_it_is_a_secret_in_a_message():
    """A password that is refused is not shown."""
    peer = {"peerAddress": "192.0.2.1", "peerASN": 64600, "password": 'hid"den'}
    (error,) = problems(peers_file(defaultPeers=[peer]))
    assert error.startswith("`defaultPeers[0].password`: must be 1 to 80 visible")
    assert "den" not in error.replace("hidden", "")
    assert "defaultPeers" not in plain(translated(peers_file(defaultPeers=[peer])).root)  # type: ignore[operator]
