"""The machine's files: what they say, what of them stays, and what is taken away again."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.values.keys import ED25519, RSA

from appliance.guest.machine_files import (
    CLOCK,
    HOST_NAME,
    HOSTS,
    KEYS,
    NETWORK,
    Device,
    configure,
    login_keys,
)
from appliance.model.guest.machine import GuestMachine

pytestmark = pytest.mark.sockets

DEVICE = Device(name="ens192", mac="00:50:56:00:00:02", index=2)
STATIC = GuestMachine(
    host_name="lb-1.example.com",
    addresses=("10.0.0.11/24", "2001:db8::11/64"),
    gateways=("10.0.0.1", "fe80::1"),
    resolvers=("10.0.0.2",),
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
    assert list(configure(root, STATIC, DEVICE)) == []
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
    list(configure(root, GuestMachine(), None))
    assert lines(root / NETWORK) == [
        "[Match]", "Type=ether", "Kind=!*", "[Network]", "DHCP=yes", "KeepConfiguration=static"
    ]  # fmt: skip
    assert not (root / CLOCK).exists()
    assert not (root / HOST_NAME).exists()


def test_what_is_said_no_longer_goes(root: Path):
    """A key that another one has replaced opens nothing any more; the host name has no other."""
    list(configure(root, STATIC, DEVICE))
    list(configure(root, replace(STATIC, ssh_keys=(RSA,), time_servers=(), host_name=None), DEVICE))
    assert lines(root / KEYS) == [RSA]
    assert not (root / CLOCK).exists()
    assert lines(root / HOST_NAME) == ["lb-1.example.com"]


def test_keys_stay_where_nothing_is_known_of_them(root: Path):
    """A property that was emptied must lock nobody out."""
    list(configure(root, STATIC, DEVICE))
    list(configure(root, replace(STATIC, ssh_keys=()), DEVICE))
    assert lines(root / KEYS) == [ED25519]


def test_keys_of_before_stay_beside_damaged_ones(root: Path):
    """What could be read opens it too, and whole ones take the place of all."""
    list(configure(root, STATIC, DEVICE))
    list(configure(root, replace(STATIC, ssh_keys=(RSA,), keys_complete=False), DEVICE))
    assert lines(root / KEYS) == [ED25519, RSA]
    list(configure(root, replace(STATIC, ssh_keys=(RSA,)), DEVICE))
    assert lines(root / KEYS) == [RSA]


def test_keys_are_counted(root: Path):
    """Those of the form, and those that were put into the home directory, where the file says they belong."""
    assert login_keys(root) == 0
    list(configure(root, STATIC, DEVICE))
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
        list(configure(root, STATIC, DEVICE))
    right = b"127.0.0.1 localhost\n10.0.0.5 nfs # \xff\n127.0.1.1 lb-1.example.com lb-1\n"
    assert (root / HOSTS).read_bytes() == right


def test_a_file_that_says_the_same_is_left_alone(root: Path):
    """Nothing is written at a start without changes."""
    list(configure(root, STATIC, DEVICE))
    before = {each: (root / each).stat().st_ino for each in (NETWORK, KEYS, HOSTS)}
    list(configure(root, STATIC, DEVICE))
    assert before == {each: (root / each).stat().st_ino for each in before}


def test_one_failure_hinders_nothing_else(root: Path):
    """The network comes up although the keys cannot be written."""
    (root / "etc").mkdir()
    (root / "etc/ssh").write_text("no folder")
    [error] = configure(root, STATIC, DEVICE)
    assert "authorized_keys.d" in str(error.filename)
    assert (root / NETWORK).exists()
    assert (root / HOSTS).exists()
