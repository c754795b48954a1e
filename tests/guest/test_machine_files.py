"""The machine's files: what they say, what of them stays, and what is taken away again."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.values.keys import ED25519, RSA

from appliance.guest.machine_files import (
    AUTHORITIES,
    CLOCK,
    HOST_NAME,
    HOSTS,
    KEYS,
    LISTEN,
    LOG,
    NETWORK,
    UNUSED,
    Device,
    configure,
    login_keys,
    network_file,
)
from appliance.model.guest.machine_settings import GuestMachine, SyslogTarget
from appliance.model.guest.networks import GuestNetwork, Role, Route

pytestmark = pytest.mark.sockets

DEVICE = Device(name="ens192", mac="00:50:56:00:00:02", index=2)
DEVICES = {Role.CLIENTS: DEVICE}
STATIC = GuestMachine(
    host_name="lb-1.example.com",
    networks=(
        GuestNetwork(
            addresses=("10.0.0.11/24", "2001:db8::11/64"),
            gateways=("10.0.0.1", "fe80::1"),
            resolvers=("10.0.0.2",),
        ),
    ),
    time_servers=("10.0.0.3", "ntp.example.com"),
    ssh_keys=(ED25519,),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give an empty file system."""
    return tmp_path


def lines(path: Path) -> list[str]:
    """Return what a file says, without comments and empty lines."""
    return [each for each in path.read_text().splitlines() if each and not each.startswith("#")]


def test_every_setting_has_its_file(root: Path):
    """networkd's, timesyncd's, sshd's and the resolver's; all can be read by everybody."""
    assert list(configure(root, STATIC, DEVICES)) == []
    assert lines(root / NETWORK) == [
        "[Match]", "MACAddress=00:50:56:00:00:02", "Type=ether", "Kind=!*",
        "[Network]", "Address=10.0.0.11/24", "Address=2001:db8::11/64", "Gateway=10.0.0.1",
        "Gateway=fe80::1", "DNS=10.0.0.2", "IPv6AcceptRA=no", "KeepConfiguration=static",
    ]  # fmt: skip
    assert lines(root / CLOCK) == ["[Time]", "NTP=10.0.0.3 ntp.example.com"]
    assert lines(root / KEYS) == [ED25519]
    assert lines(root / HOST_NAME) == ["lb-1.example.com"]
    assert lines(root / HOSTS)[-1] == "127.0.1.1 lb-1.example.com lb-1"
    modes = {(root / each).stat().st_mode & 0o777 for each in (NETWORK, CLOCK, KEYS, HOST_NAME, HOSTS)}
    assert modes == {0o644}


def test_without_addresses_it_is_dhcp(root: Path):
    """On any Ethernet device where none was found."""
    list(configure(root, GuestMachine(), {}))
    assert lines(root / NETWORK) == [
        "[Match]", "Type=ether", "Kind=!*", "[Network]", "DHCP=yes", "KeepConfiguration=static"
    ]  # fmt: skip
    assert not (root / CLOCK).exists()
    assert not (root / HOST_NAME).exists()


def test_what_is_said_no_longer_goes(root: Path):
    """A key that another one has replaced opens nothing any more; the host name has no other."""
    list(configure(root, STATIC, DEVICES))
    list(configure(root, replace(STATIC, ssh_keys=(RSA,), time_servers=(), host_name=None), DEVICES))
    assert lines(root / KEYS) == [RSA]
    assert not (root / CLOCK).exists()
    assert lines(root / HOST_NAME) == ["lb-1.example.com"]


def test_keys_stay_where_nothing_is_known_of_them(root: Path):
    """A property that was emptied must lock nobody out."""
    list(configure(root, STATIC, DEVICES))
    list(configure(root, replace(STATIC, ssh_keys=()), DEVICES))
    assert lines(root / KEYS) == [ED25519]


def test_keys_of_before_stay_beside_damaged_ones(root: Path):
    """What could be read opens it too, and whole ones take the place of all."""
    list(configure(root, STATIC, DEVICES))
    list(configure(root, replace(STATIC, ssh_keys=(RSA,), keys_complete=False), DEVICES))
    assert lines(root / KEYS) == [ED25519, RSA]
    list(configure(root, replace(STATIC, ssh_keys=(RSA,)), DEVICES))
    assert lines(root / KEYS) == [RSA]


def test_keys_are_counted(root: Path):
    """Those of the form, and those that were put into the home directory, where the file says they belong."""
    assert login_keys(root) == 0
    list(configure(root, STATIC, DEVICES))
    assert "~/.ssh/authorized_keys" in (root / KEYS).read_text()
    home = root / "home/admin/.ssh/authorized_keys"
    home.parent.mkdir(parents=True)
    home.write_text(f"# mine\n\n{RSA}\n")
    assert login_keys(root) == 2


def test_the_file_of_names_keeps_what_is_not_ours(root: Path):
    """Only Debian's line for the machine's own name is replaced; a second time changes nothing."""
    (root / "etc").mkdir()
    (root / HOSTS).write_bytes(b"127.0.0.1 localhost\n127.0.1.1 old\n10.0.0.5 nfs # \xff\n")
    for _ in range(2):
        list(configure(root, STATIC, DEVICES))
    right = b"127.0.0.1 localhost\n10.0.0.5 nfs # \xff\n127.0.1.1 lb-1.example.com lb-1\n"
    assert (root / HOSTS).read_bytes() == right


def test_a_file_that_says_the_same_is_left_alone(root: Path):
    """Nothing is written at a start without changes."""
    list(configure(root, STATIC, DEVICES))
    before = {each: (root / each).stat().st_ino for each in (NETWORK, KEYS, HOSTS)}
    list(configure(root, STATIC, DEVICES))
    assert before == {each: (root / each).stat().st_ino for each in before}


def test_one_failure_hinders_nothing_else(root: Path):
    """The network comes up although the keys cannot be written."""
    (root / "etc").mkdir()
    (root / "etc/ssh").write_text("no folder")
    [error] = configure(root, STATIC, DEVICES)
    assert "authorized_keys.d" in str(error.filename)
    assert (root / NETWORK).exists()
    assert (root / HOSTS).exists()


FURTHER = GuestMachine(
    networks=(
        GuestNetwork(addresses=("10.0.0.11/24",), gateways=("10.0.0.1",)),
        GuestNetwork(
            role=Role.SERVERS, addresses=("10.0.1.11/24",), routes=(Route(to="10.20.0.0/16", via="10.0.1.1"),)
        ),
        GuestNetwork(
            role=Role.MANAGEMENT, addresses=("10.0.2.11/24", "2001:db8:2::11/64"), resolvers=("10.0.2.5",)
        ),
        GuestNetwork(role=Role.VRRP, addresses=("10.0.3.11/24",)),
    ),
    syslog=SyslogTarget(protocol="tcp", host="10.0.2.9", port=514),
    authorities=("one\n", "two\n"),
)
ADAPTERS = {
    role: Device(name=f"ens{role.adapter}", mac=f"00:50:56:00:00:0{role.adapter}", index=role.adapter)
    for role in Role
}


def test_each_network_has_its_file(root: Path):
    """Each is matched by its adapter; the default route leads out of one; sshd is in management only."""
    assert list(configure(root, FURTHER, ADAPTERS)) == []
    assert "Gateway=10.0.0.1" in lines(root / NETWORK)
    assert lines(root / network_file(Role.SERVERS)) == [
        "[Match]", "MACAddress=00:50:56:00:00:01", "Type=ether", "Kind=!*",
        "[Network]", "Address=10.0.1.11/24", "IPv6AcceptRA=no", "KeepConfiguration=static",
        "[Route]", "Destination=10.20.0.0/16", "Gateway=10.0.1.1",
    ]  # fmt: skip
    assert "DNS=10.0.2.5" in lines(root / network_file(Role.MANAGEMENT))
    assert lines(root / LISTEN) == ["ListenAddress 10.0.2.11", "ListenAddress 2001:db8:2::11"]
    assert "LinkLocalAddressing=no" in lines(root / UNUSED)
    assert 'target="10.0.2.9" port="514" protocol="tcp"' in (root / LOG).read_text()
    assert [each.read_text() for each in sorted((root / AUTHORITIES).iterdir())] == ["one\n", "two\n"]


def test_a_network_that_is_given_no_longer_goes(root: Path):
    """With what belongs to it: sshd listens everywhere again; only one authority is trusted."""
    list(configure(root, FURTHER, ADAPTERS))
    list(configure(root, replace(STATIC, authorities=("one\n",)), DEVICES))
    assert not any((root / network_file(role)).exists() for role in Role if role is not Role.CLIENTS)
    assert not any((root / each).exists() for each in (LISTEN, LOG))
    assert [each.name for each in (root / AUTHORITIES).iterdir()] == ["00.crt"]
    list(configure(root, STATIC, DEVICES))
    assert list((root / AUTHORITIES).iterdir()) == []


def test_dhcp_in_a_further_network_brings_no_default_route(root: Path):
    """That of the clients' network stays the only one."""
    wanted = replace(STATIC, networks=(*STATIC.networks, GuestNetwork(role=Role.MANAGEMENT)))
    list(configure(root, wanted, ADAPTERS))
    assert lines(root / network_file(Role.MANAGEMENT))[4:] == [
        "[Network]", "DHCP=yes", "KeepConfiguration=static", "[DHCPv4]", "UseGateway=no",
        "[IPv6AcceptRA]", "UseGateway=no",
    ]  # fmt: skip
    assert not (root / LISTEN).exists()
