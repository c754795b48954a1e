"""The machine's own settings: what is right of them holds, and the machine can be reached in any case."""

import pytest
from support.values.keys import ED25519

from appliance.model.guest.machine_settings import GuestMachine, machine
from appliance.model.guest.networks import GuestNetwork
from appliance.model.guest.reader import PropertyReader

pytestmark = pytest.mark.pure

STATIC = {"address": "10.0.0.11/24, 2001:db8::11/64", "ssh_key": ED25519}


def read(said: dict[str, str]) -> tuple[GuestMachine, list[str], list[str]]:
    """Return the machine, the problems and the notes."""
    reader = PropertyReader(said)
    return machine(reader), [str(each) for each in reader.problems], reader.notes


def test_everything_that_is_said_holds():
    """Each property has its place."""
    said = {
        **STATIC,
        "hostname": "lb-1",
        "gateway": "10.0.0.1, fe80::1",
        "dns": "10.0.0.2",
        "ntp": "ntp.example.com, 10.0.0.3",
    }
    found, problems, notes = read(said)
    assert found == GuestMachine(
        host_name="lb-1",
        networks=(
            GuestNetwork(
                addresses=("10.0.0.11/24", "2001:db8::11/64"),
                gateways=("10.0.0.1", "fe80::1"),
                resolvers=("10.0.0.2",),
            ),
        ),
        time_servers=("ntp.example.com", "10.0.0.3"),
        ssh_keys=(ED25519,),
    )
    assert (problems, notes) == ([], [])


def test_nothing_said_is_dhcp_and_nobody_can_log_in():
    """That is told, as it is no error."""
    found, problems, notes = read({})
    assert found == GuestMachine()
    assert problems == []
    assert "no SSH public key" in notes[0]


def test_address_that_cannot_be_used_is_dhcp():
    """The machine has to be reached to be put right; the gateway is not blamed for it."""
    found, problems, notes = read({"address": "10.0.0.11", "gateway": "10.0.0.1", "ssh_key": ED25519})
    assert found.addresses == found.gateways == ()
    assert len(problems) == 1
    assert "`10.0.0.11/24`" in problems[0]
    assert "DHCP" in notes[0]


def test_one_bad_address_costs_no_other():
    """The good one is used."""
    found, problems, _ = read({"address": "10.0.0.11/24, 10.0.0.300/24", "gateway": "10.0.0.1"})
    assert found.addresses == ("10.0.0.11/24",)
    assert len(problems) == 1


def test_bad_keys_leave_those_of_before():
    """A slip in the form must not lock everybody out; of several the good one is taken besides."""
    found, problems, _ = read({"ssh_key": "ssh-rsa"})
    assert (found.ssh_keys, found.keys_complete) == ((), False)
    assert len(problems) == 1
    found, problems, _ = read({"ssh_key": f"{ED25519}, ssh-rsa AAAA"})
    assert (found.ssh_keys, found.keys_complete) == ((ED25519,), False)
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("gateway", "message", "used"),
    [
        ("10.0.1.1", "not in the network of the machine's address, 10.0.0.0/24, 2001:db8::/64", ()),
        ("10.0.0.11", "own address", ()),
        ("10.0.0.1, 10.0.0.2", "second of IPv4", ("10.0.0.1",)),
        ("10.0.0.0", "network itself", ()),
        ("10.0.0.255", "or of all in it", ()),
        ("10.0.9.1, 10.0.0.1", "not in the network", ("10.0.0.1",)),
        ("router", "must be an address", ()),
    ],
)
def test_gateways_that_cannot_work_are_told(gateway: str, message: str, used: tuple[str, ...]):
    """Those that can are used."""
    found, problems, _ = read({**STATIC, "gateway": gateway})
    assert found.gateways == used
    assert len(problems) == 1
    assert message in problems[0]


def test_gateway_without_address_is_told():
    """DHCP brings its own."""
    found, problems, _ = read({"gateway": "10.0.0.1"})
    assert found.gateways == ()
    assert "DHCP" in problems[0]


def test_address_without_gateway_is_told():
    """It may be meant, everything in one network, and can be said so."""
    _, problems, notes = read(STATIC)
    assert (len(problems), notes) == (1, [])
    assert "`none`" in problems[0]
    found, problems, notes = read({**STATIC, "gateway": "None"})
    assert (found.gateways, problems, notes) == ((), [], [])


def test_a_netmask_may_stand_behind_a_space():
    """As the tools of other systems show it."""
    found, problems, _ = read({**STATIC, "address": "10.0.0.11 255.255.255.0", "gateway": "10.0.0.1/24"})
    assert (found.addresses, found.gateways, problems) == (("10.0.0.11/24",), ("10.0.0.1",), [])


def test_one_address_with_two_lengths_is_told():
    """The first one is used."""
    found, problems, _ = read({"address": "10.0.0.11/24, 10.0.0.11/16", "gateway": "none"})
    assert found.addresses == ("10.0.0.11/24",)
    assert "twice" in problems[0]


def test_an_address_that_reaches_nobody_does_not_switch_dhcp_off():
    """Link-local, loopback, and what is no host's: the machine must be reached to be put right."""
    for each in ("fe80::1/64", "127.0.0.1/8", "10.0.0.255/24", "10.0.0.11/0"):
        found, problems, notes = read({"address": each, "ssh_key": ED25519})
        assert (found.addresses, len(problems)) == ((), 1)
        assert "DHCP" in notes[0]
