"""The OVA: descriptor and archive, and a machine of it that boots, serves, and takes a changed property."""

import base64
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from support.machines.podman import ROOT, make_ova, measured
from support.machines.qemu import BOOT, Firmware, Machine, Shell, environment, make_key, ovf_iso
from support.network.namespaces import Segment
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.values.certificates import Certificates, issue

import appliance
from appliance.model.guest.networks import Role
from appliance.model.guest.properties import BY_KEY, PROPERTIES
from image.ova.descriptor import OVF, RASD, VMDK
from image.ova.disk import debugfs
from image.ova.vmdk import name_contents

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs(
        *("podman", "runc", "mmdebstrap", "qemu-img", "qemu-system-x86_64", "genisoimage", "ssh", "ip"),
        root=True,
    ),
    pytest.mark.slow("makes the OVA and boots it in software"),
    pytest.mark.timeout(3600),  # a boot has no hardware's help: beside other work it takes many times longer
]
_full = pytest.mark.skipif(not os.environ.get("E2E_FULL"), reason="make image-full: minutes for each boot")
_uefi = pytest.mark.needs("/usr/share/OVMF/OVMF_CODE_4M.fd")

_ADDRESS, _SECOND, _VIP, _CHANGED_VIP = "192.0.2.50", "192.0.2.51", "192.0.2.100", "192.0.2.101"
_MANAGED, _MOVED, _LOG = "203.0.113.50", "203.0.113.51", "203.0.113.9"
_WORDS = "correct horse"
_SERVING = 600.0
"""Seconds until it serves, on a machine that does other things beside."""

# What every process of ours may have in effect, as /proc/PID/status writes it.
_NONE, _BIND, _VRRP = "0000000000000000", "0000000000000400", "0000000001807000"


@pytest.fixture(scope="module")
def ova(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make ova` makes."""
    folder = tmp_path_factory.mktemp("dist")
    seconds = make_ova(folder)
    (found,) = folder.iterdir()
    measured(f"OVA: {found.stat().st_size / 1e6:.0f} MB, made in {seconds:.0f} s (less where layers were)")
    return found


@pytest.fixture(scope="module")
def parts(ova: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files in it."""
    folder = tmp_path_factory.mktemp("ova")
    with tarfile.open(ova) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def disk(parts: Path) -> Path:
    """Its disk."""
    (found,) = parts.glob("*.vmdk")
    return found


@pytest.fixture
def descriptor(parts: Path) -> ET.Element:
    """Its descriptor."""
    (found,) = parts.glob("*.ovf")
    return ET.parse(found).getroot()  # noqa: S314  # our own


def _of(element: ET.Element | None, name: str) -> str:
    assert element is not None
    return element.attrib[f"{{{OVF}}}{name}"]


def test_archive(ova: Path):
    """Descriptor, manifest and disk are in this order in a plain archive, owned by nobody of this machine."""
    stem = f"lb-appliance-{appliance.__version__}"
    assert ova.name == f"{stem}.ova"
    with tarfile.open(ova) as archive:
        entries = archive.getmembers()
    assert [each.name for each in entries] == [f"{stem}.ovf", f"{stem}.mf", f"{stem}-disk1.vmdk"]
    assert {(each.uid, each.gid, each.mode) for each in entries} == {(0, 0, 0o644)}
    assert len({each.mtime for each in entries}) == 1


def test_manifest(parts: Path):
    """The manifest has the SHA-256 of both other files."""
    (manifest,) = parts.glob("*.mf")
    found = dict(re.findall(r"^SHA256\((.+)\)= ([0-9a-f]{64})$", manifest.read_text(), re.MULTILINE))
    others = [each for each in parts.iterdir() if each != manifest]
    assert found == {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in others}


def test_same_image_same_archive(ova: Path, tmp_path: Path):
    """Made again of the same root file system, the archive has the same bytes."""
    make_ova(tmp_path)
    assert _digest(tmp_path / ova.name) == _digest(ova)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def test_disk(disk: Path, descriptor: ET.Element):
    """The disk is what vSphere imports, and the descriptor's figures are its own."""
    header = disk.read_bytes()[:8]
    assert header == b"KDMV" + (3).to_bytes(4, "little")
    told = ["qemu-img", "info", "--output", "json", str(disk)]
    found = json.loads(subprocess.run(told, check=True, capture_output=True, timeout=60).stdout)
    assert found["format-specific"]["data"]["create-type"] == "streamOptimized"
    file, entry = descriptor.find(f".//{{{OVF}}}File"), descriptor.find(f".//{{{OVF}}}Disk")
    assert (_of(file, "href"), _of(file, "size")) == (disk.name, str(disk.stat().st_size))
    assert _of(entry, "fileRef") == _of(file, "id")
    assert (_of(entry, "capacity"), _of(entry, "format")) == (str(found["virtual-size"]), VMDK)


@pytest.mark.parametrize("number", ["0", "fffffff", "12345678"])
def test_content_id(tmp_path: Path, number: str):
    """Qemu's random number has one digit or eight; ours takes its place, and nothing moves."""
    disk = tmp_path / "disk.vmdk"
    text = f"# Disk DescriptorFile\nversion=1\nCID={number}\nparentCID=ffffffff\n".encode()
    disk.write_bytes(b"KDMV".ljust(512, b"\1") + text.ljust(20 * 512, b"\0") + b"grains")
    name_contents(disk, "0000abcd")
    written = disk.read_bytes()
    assert written[512:].startswith(b"# Disk DescriptorFile\nversion=1\nCID=0000abcd\nparentCID=ffffffff\n\0")
    assert (len(written), written[-6:]) == (21 * 512 + 6, b"grains")


def test_hardware(descriptor: ET.Element):
    """Every device has a number of its own and a parent that is there; the disk is the described one."""
    items = [
        {child.tag.removeprefix(f"{{{RASD}}}"): child.text or "" for child in each}
        for each in descriptor.iter(f"{{{OVF}}}Item")
    ]
    numbers = [each["InstanceID"] for each in items]
    assert len(set(numbers)) == len(numbers)
    assert {each["Parent"] for each in items if "Parent" in each} <= set(numbers)
    assert all(list(each) == sorted(each) for each in items)
    adapters = [each for each in items if each["ResourceType"] == "10"]
    assert [each["Connection"] for each in adapters] == list(Role)
    assert [each["AddressOnParent"] for each in adapters] == ["7", "8", "9", "10"]
    kinds = {each["ResourceSubType"] for each in items if "ResourceSubType" in each}
    assert {"VirtualSCSI", "VmxNet3"} <= kinds
    host = next(each["HostResource"] for each in items if "HostResource" in each)
    assert host == f"ovf:/disk/{_of(descriptor.find(f'.//{{{OVF}}}Disk'), 'diskId')}"
    networks = {_of(each, "name") for each in descriptor.iter(f"{{{OVF}}}Network")}
    assert {each["Connection"] for each in items if "Connection" in each} == networks


def test_each_configuration_has_one_network_more(descriptor: ET.Element):
    """The default one has the clients' alone; devices of none are in all."""
    options = [_of(each, "id") for each in descriptor.iter(f"{{{OVF}}}Configuration")]
    assert options == ["one", "two", "three", "four"]
    having = {each.get(f"{{{OVF}}}configuration"): "" for each in descriptor.iter(f"{{{OVF}}}Item")}
    assert list(having) == [None, "two three four", "three four", "four"]


def test_form(descriptor: ET.Element):
    """The form has every property of the table, in its order, each below its category."""
    section = descriptor.find(f".//{{{OVF}}}ProductSection")
    assert section is not None
    found, category = [], ""
    for each in section:
        if each.tag == f"{{{OVF}}}Category":
            category = each.text or ""
        elif each.tag == f"{{{OVF}}}Property":
            found.append((category, _of(each, "key"), _of(each, "value")))
            assert (_of(each, "type"), _of(each, "userConfigurable")) == ("string", "true")
            assert each.get(f"{{{OVF}}}password") == ("true" if BY_KEY[_of(each, "key")].secret else None)
    assert found == [(each.category, each.key, each.default) for each in PROPERTIES]
    hardware = descriptor.find(f".//{{{OVF}}}VirtualHardwareSection")
    assert _of(hardware, "transport") == "com.vmware.guestInfo iso"


def test_readme():
    """The README's table is the form."""
    text = (ROOT / "image" / "README.md").read_text()
    table = [f"| `{each.key}` | {each.label} | {each.description} |" for each in PROPERTIES]
    assert "\n".join(table) in text


class _Around:
    """A client, a server with TLS at the masters' port, and machines of the OVA."""

    def __init__(self, segment: Segment, folder: Path, disk: Path) -> None:
        self.segment, self.folder, self.disk = segment, folder, disk
        self.client, self.servers = segment.node("client"), segment.node("servers")
        self.key, self.public = make_key(folder)
        self.certificates: Certificates = issue(folder, _ADDRESS, _SECOND, _VIP, _CHANGED_VIP)

    def properties(self, **changes: str) -> dict[str, str]:
        """Return a form that is filled in."""
        return {
            "hostname": "lb-1.example.com",
            "address": f"{_ADDRESS}/24",
            "gateway": self.servers.address,
            "ssh_key": self.public,
            "cluster_name": "ocp4",
            "cluster_domain": "example.com",
            "masters": self.servers.address,
            "api_vip": _VIP,
            **changes,
        }

    def machine(
        self,
        name: str,
        *,
        firmware: Firmware = Firmware.BIOS,
        cd: Path | None = None,
        credential: Path | None = None,
        bridges: Sequence[str] = (),
    ) -> Machine:
        """Return a machine, that is off."""
        return Machine(
            self.segment, name=name, folder=self.folder, disk=self.disk,
            firmware=firmware, cd=cd, credential=credential, bridges=bridges,
        )  # fmt: skip

    def network(self, name: str, **addresses: str) -> str:
        """Add a network with the nodes of the segment that have an address in it; return its bridge."""
        self.segment.batch(f"link add {name} type bridge", f"link set {name} up")
        for number, (node, address) in enumerate(addresses.items()):
            inside = {"client": self.client, "servers": self.servers}[node]
            self.segment.batch(
                f"link add {name}{number} type veth peer name {name} netns {inside.name}",
                f"link set {name}{number} master {name} up",
            )
            inside.batch(f"link set {name} up", f"address add {address}/24 dev {name}")
        return name

    def shell(self, address: str = _ADDRESS) -> Shell:
        """Return the user admin of the machine that has the address."""
        return Shell(self.client, address=address, key=self.key)

    def get(self, address: str, port: int = 9445) -> str:
        """Return who answers /readyz there over TLS, "" for nobody."""
        resolve = ("--cacert", str(self.certificates.authority), "--max-time", "10")
        command = ["curl", "--silent", *resolve, f"https://{address}:{port}/readyz"]
        return self.client.run(command, check=False)

    def serves(self, address: str, machine: Machine) -> None:
        """Wait until it does."""
        wait_until(
            lambda: self.get(address) == "master-0" or machine.has_ended(),
            what=f"https://{address}:9445/readyz answers",
            timeout=_SERVING,
            pause=1,
        )
        assert not machine.has_ended()


@pytest.fixture
def around(disk: Path, tmp_path: Path) -> Iterator[_Around]:
    """A segment with a client and a server."""
    with Segment() as segment:
        made = _Around(segment, tmp_path, disk)
        certificate = (made.certificates.chain, made.certificates.key)
        with made.servers.inside():
            backend = Backend("master-0", port=16443, tls_port=6443, certificate=certificate)
        with backend:
            yield made


def _processes(shell: Shell) -> dict[str, tuple[str, str]]:
    """Return user and effective capabilities of each of our programs."""
    script = (
        r"for each in $(pgrep -f appliance.programs.); do "
        r"""printf '%s %s %s\n' "$(ps -o user:20= -p $each)" """
        r""""$(sed -n 's/^CapEff:\s*//p' /proc/$each/status)" """
        r""""$(tr '\0' ' ' </proc/$each/cmdline)"; done; true"""
    )
    lines = (line.split(maxsplit=2) for line in shell.run(script).splitlines())
    there = (line for line in lines if len(line) == 3)  # the others ended while they were looked at
    found = ((line, re.search(r"-m appliance\.programs\.(\w+)( api)?", line[-1])) for line in there)
    return {name[1]: (line[0], line[1]) for line, name in found if name and not line[-1].startswith("bash")}


def _looked_at(shell: Shell) -> None:
    """Check what runs in the machine, and who may do what there."""
    assert shell.run("systemctl --failed --no-legend --plain") == ""
    processes = _processes(shell)
    assert {user for user, _ in processes.values()} == {"appliance"}
    found = {name: capabilities for name, (_, capabilities) in processes.items()}
    assert found == {
        "supervisor": _NONE, "reload": _BIND, "health": _NONE, "worker": _NONE, "tracker": _NONE,
        "proxy": _BIND, "vrrp": _VRRP,
    }  # fmt: skip
    for unit in ("appliance.service", "appliance-guest.service", "appliance-console.service"):
        figure = shell.run(f"systemd-analyze security --no-pager {unit} | tail -n 1")
        measured(f"OVA: systemd-analyze security {unit}: {figure.partition(': ')[2].strip()}")
    # It serves before its other programs answer, which takes long where it is emulated.
    rehearsal = "sudo appliance reload --dry-run >&2 && echo fine"
    wait_until(
        lambda: shell.run(rehearsal, check=False) == "fine\n",
        what="every program would take a reload",
        timeout=BOOT,
        pause=2,
    )
    why = "sudo journalctl -u appliance -n 40 -o cat"
    assert (
        shell.run(f"if sudo systemctl reload appliance; then echo reloaded; else {why}; fi") == "reloaded\n"
    )
    said = shell.run("sudo appliance guest show")
    assert "OVF ISO" in said
    assert "! " not in said
    assert "vgauth" not in shell.run("systemctl show --property Requires,Wants open-vm-tools.service")
    settings = shell.run("sudo sshd -T")
    assert {"passwordauthentication no", "permitrootlogin no"} <= set(settings.splitlines())
    assert shell.run("ss -Hlntu 'sport = 5355 or sport = 5353'") == ""  # LLMNR and multicast DNS
    measured(f"OVA: {shell.run('df --output=used -BM / | tail -n 1').strip()} of the disk in use")


_CHECK = re.compile(r"^\| [^|]+ \| `(.+)` \| (?:nothing|`(.*)`) \|$", re.MULTILINE)


def _checklist(shell: Shell) -> None:
    """Type what the README tells auditors to type."""
    text = (ROOT / "image" / "README.md").read_text().partition("**Checklist**")[2].partition("Not as the")[0]
    checks = [(command.replace("\\|", "|"), answer) for command, answer in _CHECK.findall(text)]
    assert len(checks) == text.count("\n|") - 2
    answers = {
        command: shell.run(f"bash -c {shlex.quote(command)}", check=False).strip() for command, _ in checks
    }
    assert answers == dict(checks)


_LEVELS = {"debug": 7, "info": 6, "warning": 4, "error": 3}


def _levels_of_the_journal(shell: Shell) -> None:
    """Check that journald knows the level of each line, those of a program that was killed among them."""
    shell.run("sudo pkill -KILL -f '[a]ppliance.programs.health'")
    warnings = "sudo journalctl -u appliance -p warning -o cat"
    wait_until(lambda: "program-exited" in shell.run(warnings), what="it is a warning", timeout=BOOT, pause=1)
    entries = map(json.loads, shell.run("sudo journalctl -u appliance -t appliance -o json").splitlines())
    said = [(each["PRIORITY"], json.loads(each["MESSAGE"])) for each in entries if each["MESSAGE"][0] == "{"]
    assert len(said) > 5
    assert {(str(_LEVELS[line["level"]]), line["level"]) for _, line in said} == {
        (priority, line["level"]) for priority, line in said
    }


def _kernel_was_updated(shell: Shell) -> None:
    """Do what a kernel package does at its end, and check that GRUB is told what it was told."""
    there = "sudo cat /boot/grub/grub.cfg"
    before = shell.run(there)
    shell.run("sudo /etc/kernel/postinst.d/zz-update-grub $(uname -r) /boot/vmlinuz-$(uname -r); sync")
    after = shell.run(there)
    assert "update-grub" not in before.partition("\n")[0]
    assert after != before  # grub-mkconfig has its head and its marks in it
    assert _orders(after) == _orders(before)


def _orders(configuration: str) -> list[str]:
    return [line for line in configuration.splitlines() if line.strip() and not line.startswith("#")]


_FILL = """
cd /
free=$(($(stat -f -c '%f * %S' /)))
fallocate -l $((free - (64 << 20))) /filled-1
dd if=/dev/zero of=/filled-2 bs=64k 2>/dev/null
dd if=/dev/zero of=/filled-3 bs=1k 2>/dev/null
sync
df --output=avail -B1 / | tail -n 1
"""


@pytest.mark.promise("container", "the virtual machine boots, serves, and follows its form")
def test_boots_serves_and_takes_a_changed_property(around: _Around):
    """With a filled-in form it serves on its virtual IP; after a restart with another form, on that one.

    A kernel was updated before that restart, and the disk is full at another one. Its power button ends it in
    order.
    """
    first = ovf_iso(around.folder, "first", around.properties())
    second = ovf_iso(around.folder, "second", around.properties(hostname="lb-2", api_vip=_CHANGED_VIP))
    started = time.monotonic()
    with around.machine("vm", cd=first) as machine:
        machine.says("login:", timeout=_SERVING)
        prompt = time.monotonic() - started
        around.serves(_VIP, machine)
        measured(
            f"OVA, BIOS, pvscsi, vmxnet3, emulated: login prompt after {prompt:.0f} s, "
            f"https://VIP:9445/readyz after {time.monotonic() - started:.0f} s"
        )
        machine.says(f"ssh admin@{_ADDRESS}", timeout=_SERVING)  # the screen knows its address
        assert "State:     starting" in machine.console()
        assert "not running" not in machine.console()
        shell = around.shell()
        assert shell.run("hostname") == "lb-1.example.com\n"
        _looked_at(shell)
        keys = shell.run("cat /etc/ssh/ssh_host_*.pub /etc/machine-id")
        assert shell.run("ssh-keygen -l -f /etc/ssh/ssh_host_ed25519_key.pub").split()[1] in machine.console()
        _levels_of_the_journal(shell)
        _checklist(shell)
        _kernel_was_updated(shell)
        shell.run("echo kept | sudo tee /etc/appliance/kept && sync")
        before, started = machine.said(), time.monotonic()
        machine.restart(cd=second)
        around.serves(_CHANGED_VIP, machine)
        measured(f"OVA: serves {time.monotonic() - started:.0f} s after a power cut, with another property")
        machine.says("login:", since=before)
        assert around.get(_VIP) == ""
        assert shell.run("hostname; sudo cat /etc/appliance/kept") == "lb-2\nkept\n"
        assert shell.run("cat /etc/ssh/ssh_host_*.pub /etc/machine-id") == keys
        assert shell.run(f"sudo sh -c {shlex.quote(_FILL)}").strip() == "0"
        before, started = machine.said(), time.monotonic()
        machine.restart(cd=second)
        around.serves(_CHANGED_VIP, machine)
        measured(f"OVA: serves {time.monotonic() - started:.0f} s after a power cut with a full disk")
        machine.says("login:", since=before)
        started = time.monotonic()
        machine.power_button()
        wait_until(machine.has_ended, what="it is off", timeout=BOOT)
        measured(f"OVA: off {time.monotonic() - started:.0f} s after its power button")


@_full
@_uefi
@pytest.mark.parametrize("firmware", [Firmware.UEFI, Firmware.SECURE_BOOT])
def test_firmware(around: _Around, firmware: Firmware):
    """It boots with UEFI too, also where only signed programs may."""
    iso = ovf_iso(around.folder, "form", around.properties())
    with around.machine("vm", firmware=firmware, cd=iso) as machine:
        seconds = machine.says("login:", timeout=_SERVING)
        measured(f"OVA, {firmware}: login prompt after {seconds:.0f} s")
        around.serves(_VIP, machine)
        state = around.shell().run("sudo dmesg | grep -i 'secure boot'; true")
        assert (firmware is Firmware.SECURE_BOOT) == ("Secure boot enabled" in state)


@_full
def test_whole_configuration_by_credential(around: _Around):
    """A systemd credential brings a form as well, and a whole configuration in it."""
    pool = {"check": {"type": "tcp"}, "servers": {"a": {"address": f"{around.servers.address}:6443"}}}
    config = {
        "api": {"frontends": {"one": {"bind": [f"{_ADDRESS}:9445"], "pool": "masters"}}},
        "pools": {"masters": pool},
    }
    encoded = base64.b64encode(yaml.safe_dump(config).encode()).decode()
    credential = around.folder / "credential.xml"
    credential.write_text(environment(around.properties(config=encoded)))
    with around.machine("vm", credential=credential) as machine:
        around.serves(_ADDRESS, machine)
        assert "a systemd credential" in around.shell().run("sudo appliance guest show", check=False)


@_full
def test_bad_properties(around: _Around):
    """With wrong properties it boots to SSH all the same, and the console says which and what to do."""
    form = around.properties(api_vip="not-an-address", masters="10.0.0.300")
    with around.machine("vm", cd=ovf_iso(around.folder, "bad", form)) as machine:
        machine.says("api_vip", timeout=_SERVING)
        machine.says("to change properties", timeout=BOOT)
        shell = around.shell()
        wait_until(shell.answers, what="a login works", timeout=BOOT, pause=2)
        said = shell.run("sudo appliance guest show", check=False)
        assert "api_vip" in said
        assert "masters" in said
        assert shell.run("systemctl --failed --no-legend --plain") == ""


@_full
def test_no_properties(around: _Around):
    """Without any it boots to a console that says how to configure it, and asks for what is missing."""
    with around.machine("vm") as machine:
        machine.says("not configured", timeout=_SERVING)
        machine.says("nobody can log in", timeout=BOOT)
        for question, answer in (
            ("Password of the user admin", _WORDS),
            ("Repeat for confirmation", _WORDS),
            ("Host name:", "lb-1"),
            ("Address:", f"{_ADDRESS}/24"),
            ("Gateway:", "none"),
            ("DNS servers:", ""),
            ("SSH public key:", around.public),
            ("login:", "admin"),
            ("Password:", _WORDS),
        ):
            machine.says(question, timeout=BOOT)
            machine.types(answer)
        machine.says("admin@lb-1:~$", timeout=BOOT)
        shell = around.shell()
        wait_until(shell.answers, what="a login works", timeout=BOOT, pause=2)
        assert "passwordauthentication no" in shell.run("sudo sshd -T")


def _listening(shell: Shell, port: int) -> set[str]:
    """Return the addresses at which a port is open."""
    lines = shell.run(f"ss -Hlnt 'sport = {port}'").splitlines()
    return {line.split()[3].rpartition(":")[0].strip("[]") for line in lines}


def _seen(around: _Around, bridge: str) -> bool:
    """Return whether there are advertisements in a network."""
    listen = f"timeout 8 tcpdump -c 1 -i {bridge} ip proto 112; true"
    return "VRRP" in around.segment.run(["sh", "-c", listen])


@pytest.mark.needs("tcpdump")
@pytest.mark.promise("container", "each of four networks of the virtual machine has its role")
def test_four_networks(around: _Around):
    """Clients, servers, management and VRRP are apart, whatever order the kernel has for the adapters.

    SSH and the page are with the management, advertisements with VRRP; log and authorities go where the form
    says. A changed form is read at the next start.
    """
    bridges = (
        around.network("servers", servers="198.51.100.20"),
        around.network("managed", client=_LOG),
        around.network("vrrp", client="10.3.0.51"),  # advertisements are sent to the other node
    )
    machine = around.machine("vm", bridges=bridges)
    authority = around.certificates.authority.read_text()
    form = around.properties(
        hostname="lb-1", gateway="none", masters="198.51.100.20", page_password=_WORDS,
        servers_address="198.51.100.50/24", management_address=f"{_MANAGED}/24", vrrp_address="10.3.0.50/24",
        nodes="lb-1=10.3.0.50, lb-2=10.3.0.51", syslog=f"tcp://{_LOG}:514", ca_bundle=authority,
        routes="10.20.0.0/16 via 198.51.100.1",
    )  # fmt: skip
    machine.insert(ovf_iso(around.folder, "four", form, machine.macs))
    received = around.folder / "log"
    with received.open("wb") as output:
        listener = around.client.start([sys.executable, "-c", _RECEIVER, _LOG], output=output)
    with machine:
        around.serves(_VIP, machine)
        shell = around.shell(_MANAGED)
        wait_until(shell.answers, what="a login works", timeout=BOOT, pause=2)
        said = shell.run("sudo appliance guest show", check=False)
        assert "! " not in said
        assert _WORDS not in said
        assert _listening(shell, 22) == {_MANAGED}
        assert _listening(shell, 29445) == {_MANAGED, "127.0.0.1", "::1"}
        assert not around.shell().answers()
        page = ["curl", "--silent", "--user", f"admin:{_WORDS}", f"http://{_MANAGED}:29445/api/v1/status"]
        assert json.loads(around.client.run(page))["virtual_ips"]
        assert "via 198.51.100.1" in shell.run("ip route get 10.20.1.1")
        assert (_seen(around, "vrrp"), _seen(around, "bridge")) == (True, False)
        wait_until(lambda: b"appliance" in received.read_bytes(), what="the journal is sent", timeout=BOOT)
        wait_until(
            lambda: authority.splitlines()[1] in shell.run("cat /etc/ssl/certs/ca-certificates.crt"),
            what="the authority is trusted",
            timeout=BOOT,
            pause=2,
        )
        moved = {
            **form,
            "management_address": f"{_MOVED}/24",
            "page_password": "another word",
            "ca_bundle": "",
        }
        machine.restart(cd=ovf_iso(around.folder, "moved", moved, machine.macs))
        shell = around.shell(_MOVED)
        around.serves(_VIP, machine)
        wait_until(shell.answers, what="a login works at the new address", timeout=BOOT, pause=2)
        assert _listening(shell, 22) == {_MOVED}
        page[3:] = ["admin:another word", f"http://{_MOVED}:29445/api/v1/status"]
        assert json.loads(around.client.run(page))["virtual_ips"]
        wait_until(
            lambda: authority.splitlines()[1] not in shell.run("cat /etc/ssl/certs/ca-certificates.crt"),
            what="the authority is trusted no longer",
            timeout=BOOT,
            pause=2,
        )
        assert shell.run("systemctl --failed --no-legend --plain") == ""
    listener.kill()


_RECEIVER = """
import socket, sys
with socket.create_server((sys.argv[1], 514)) as server:
    while True:
        connection, _ = server.accept()
        while data := connection.recv(65536):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
"""


@_full
def test_pair(around: _Around):
    """Two machines share a virtual IP; when one dies the other answers."""
    pair = (("one", _ADDRESS, _SECOND, "150"), ("two", _SECOND, _ADDRESS, "100"))
    forms = {
        name: around.properties(hostname=name, address=f"{own}/24", vrrp_peers=other, vrrp_priority=priority)
        for name, own, other, priority in pair
    }
    cds = {name: ovf_iso(around.folder, name, form) for name, form in forms.items()}
    with around.machine("one", cd=cds["one"]) as first:
        around.serves(_VIP, first)
        with around.machine("two", cd=cds["two"]) as other:
            around.serves(_SECOND, other)
            wait_until(
                lambda: "backup" in _vip_state(around, _SECOND), what="it is backup", timeout=BOOT, pause=2
            )
            started = time.monotonic()
            first.kill()
            around.serves(_VIP, other)
            measured(f"OVA, pair: the second answers {time.monotonic() - started:.1f} s after a crash")


def _vip_state(around: _Around, address: str) -> str:
    found = json.loads(around.shell(address).run("sudo appliance status --json", check=False) or "{}")
    return " ".join(str(each.get("state")) for each in found.get("virtual_ips", ()))


@_full
@pytest.mark.needs("debugfs")
def test_rpctool_comes_first(around: _Around):
    """What VMware's tool says wins over a CD: a stand-in for the tool is put into the disk before."""
    told = around.folder / "told.xml"
    told.write_text(environment(around.properties()))
    tool = around.folder / "tool"
    tool.write_text('#!/bin/sh\n[ "$1" = "info-get guestinfo.ovfEnv" ] && cat /usr/local/told.xml\n')
    raw = around.folder / "disk.raw"
    subprocess.run(["qemu-img", "convert", "-O", "raw", str(around.disk), str(raw)], check=True, timeout=300)
    commands = [
        *(f"write {told} /usr/local/told.xml", f"write {tool} /usr/local/bin/vmware-rpctool"),
        "set_inode_field /usr/local/bin/vmware-rpctool mode 0100755",
    ]
    debugfs(raw, commands)
    around.disk = around.folder / "disk.vmdk"
    convert = ["qemu-img", "convert", "-f", "raw", "-O", "vmdk", str(raw), str(around.disk)]
    subprocess.run(convert, check=True, timeout=300)
    cd = ovf_iso(around.folder, "other", around.properties(address="192.0.2.60/24"))
    with around.machine("vm", cd=cd) as machine:
        around.serves(_VIP, machine)
        assert "VMware's tool" in around.shell().run("sudo appliance guest show", check=False)
