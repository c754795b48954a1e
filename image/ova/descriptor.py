"""The OVF descriptor (DMTF DSP0243 1.1): hardware, and the form that appliance.model.guest_properties has.

What it asks of vSphere is what Debian's kernel for virtual machines can drive: VMXNET3, VMware's paravirtual
SCSI, and an IDE CD-ROM, by which properties reach a machine without VMware's tools.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from appliance.model.guest.networks import Role
from appliance.model.guest.properties import PROPERTIES, Property

OVF: Final = "http://schemas.dmtf.org/ovf/envelope/1"
RASD: Final = "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"
VSSD: Final = "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData"
VMW: Final = "http://www.vmware.com/schema/ovf"
VMDK: Final = "http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"

TRANSPORT: Final = "com.vmware.guestInfo iso"
"""VMware's tool first; the CD-ROM for what has no such tool."""

HARDWARE: Final = "vmx-15"
"""ESXi 6.7 U2, the oldest that anybody should run; all later ones take it."""

PROCESSORS: Final = 2
"""One for traffic and one for the rest: more than one is what keeps vrrp on time while a proxy is busy."""

MEMORY_MB: Final = 2048
"""Two workers with 40,000 connections, twice that while an old generation drains, and the system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The VMDK: its name and size in the archive, the disk's size, and how much of it is in use; bytes."""

    file: str
    size: int
    capacity: int
    populated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What the form's first page says."""

    name: str
    version: str
    vendor: str = "lb-appliance"


def descriptor(product: Product, disk: Disk, properties: Iterable[Property] = PROPERTIES) -> bytes:
    """Return the .ovf file."""
    for prefix, uri in (("ovf", OVF), ("rasd", RASD), ("vssd", VSSD), ("vmw", VMW)):
        ET.register_namespace(prefix, uri)
    envelope = ET.Element(f"{{{OVF}}}Envelope")
    references = _sub(envelope, "References")
    _sub(references, "File", href=disk.file, id="file1", size=str(disk.size))
    _disks(envelope, disk)
    _networks(envelope)
    _configurations(envelope)
    system = _sub(envelope, "VirtualSystem", id=product.name)
    _text(system, "Info", "A load balancer for OpenShift and Kubernetes")
    _text(system, "Name", product.name)
    operating = _sub(system, "OperatingSystemSection", id="96")  # CIM_OperatingSystem: Debian, 64 bit
    operating.set(f"{{{VMW}}}osType", "debian10_64Guest")  # the newest that hardware version 15 knows
    _text(operating, "Info", "The operating system")
    _hardware(system)
    _product(system, product, properties)
    ET.indent(envelope)
    text: bytes = ET.tostring(envelope, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _disks(envelope: ET.Element, disk: Disk) -> None:
    section = _sub(envelope, "DiskSection")
    _text(section, "Info", "Virtual disks")
    _sub(
        section,
        "Disk",
        capacity=str(disk.capacity),
        capacityAllocationUnits="byte",
        diskId="vmdisk1",
        fileRef="file1",
        format=VMDK,
        populatedSize=str(disk.populated),
    )


def _networks(envelope: ET.Element) -> None:
    section = _sub(envelope, "NetworkSection")
    _text(section, "Info", "Networks")
    for role, (_, description) in _NETWORKS.items():
        _text(_sub(section, "Network", name=role), "Description", description)


def _configurations(envelope: ET.Element) -> None:
    """Add how many of the networks a machine has; the form asks for one of these."""
    section = _sub(envelope, "DeploymentOptionSection")
    _text(section, "Info", "How many networks")
    for role, (configuration, description) in _NETWORKS.items():
        chosen = {"default": "true"} if role is Role.CLIENTS else {}
        option = _sub(section, "Configuration", id=configuration, **chosen)
        _text(option, "Label", _LABELS[role])
        _text(option, "Description", description)


def _hardware(system: ET.Element) -> None:
    section = _sub(system, "VirtualHardwareSection", transport=TRANSPORT)
    _text(section, "Info", "Virtual hardware")
    settings = _sub(section, "System")
    for name, value in (
        ("ElementName", "Virtual Hardware Family"),
        ("InstanceID", "0"),
        ("VirtualSystemType", HARDWARE),
    ):
        ET.SubElement(settings, f"{{{VSSD}}}{name}").text = value
    for configurations, item in [*(("", item) for item in _ITEMS), *map(_adapter, Role)]:
        element = _sub(section, "Item", **({"configuration": configurations} if configurations else {}))
        for name, value in sorted(item.items()):  # the schema wants them in this order
            ET.SubElement(element, f"{{{RASD}}}{name}").text = value
    for key, setting in _CONFIG:
        config = ET.SubElement(section, f"{{{VMW}}}Config")
        config.set(f"{{{OVF}}}required", "false")
        config.set(f"{{{VMW}}}key", key)
        config.set(f"{{{VMW}}}value", setting)


def _product(system: ET.Element, product: Product, properties: Iterable[Property]) -> None:
    section = _sub(system, "ProductSection")
    _text(section, "Info", "What this machine is told")
    _text(section, "Product", "Load balancer for OpenShift and Kubernetes")
    _text(section, "Vendor", product.vendor)
    _text(section, "Version", product.version.partition("+")[0])
    _text(section, "FullVersion", product.version)
    for category, members in groupby(properties, key=lambda each: each.category):
        _text(section, "Category", category)
        for each in members:
            _property(section, each)


def _property(section: ET.Element, each: Property) -> None:
    element = _sub(
        section,
        "Property",
        key=each.key,
        type="string",
        qualifiers=f"MaxLen({each.longest})",
        userConfigurable="true",
        value=each.default,
        **({"password": "true"} if each.secret else {}),
    )
    _text(element, "Label", each.label)
    _text(element, "Description", each.description)


def _sub(parent: ET.Element, tag: str, /, **attributes: str) -> ET.Element:
    return ET.SubElement(
        parent, f"{{{OVF}}}{tag}", {f"{{{OVF}}}{key}": value for key, value in attributes.items()}
    )


def _text(parent: ET.Element, tag: str, text: str) -> None:
    _sub(parent, tag).text = text


_NETWORKS: Final = {
    Role.CLIENTS: ("one", "Clients and virtual IPs; and everything that has no network of its own"),
    Role.SERVERS: ("two", "The servers of the pools: masters and routers"),
    Role.MANAGEMENT: ("three", "SSH and the page, which then answer in no other network"),
    Role.VRRP: ("four", "What the load balancers send each other, and nothing else"),
}
"""Each network with the configuration that is the first to have it."""

_LABELS: Final = {
    Role.CLIENTS: "One network",
    Role.SERVERS: "Two networks: clients, servers",
    Role.MANAGEMENT: "Three networks: clients, servers, management",
    Role.VRRP: "Four networks: clients, servers, management, VRRP",
}
_FIRST_ADAPTER: Final = 7
"""Number of its unit, and of its item: vSphere has a machine's network adapters from there on."""


def _adapter(role: Role) -> tuple[str, dict[str, str]]:
    """Return the network adapter of a role, with the configurations that have it."""
    number = _FIRST_ADAPTER + role.adapter
    having = [configuration for each, (configuration, _) in _NETWORKS.items() if each.adapter >= role.adapter]
    return (
        "" if role is Role.CLIENTS else " ".join(having),
        {
            "AddressOnParent": str(number),
            "AutomaticAllocation": "true",
            "Connection": role,
            "Description": "VMXNET3 ethernet adapter",
            "ElementName": f"Network adapter {role.adapter + 1}",
            "InstanceID": str(number),
            "ResourceSubType": "VmxNet3",
            "ResourceType": "10",
        },
    )


# CIM_ResourceAllocationSettingData: 3 processor, 4 memory, 5 IDE, 6 SCSI, 10 network, 15 CD-ROM, 17 disk.
_ITEMS: Final[tuple[dict[str, str], ...]] = (
    {
        "AllocationUnits": "hertz * 10^6",
        "Description": "Number of Virtual CPUs",
        "ElementName": f"{PROCESSORS} virtual CPUs",
        "InstanceID": "1",
        "ResourceType": "3",
        "VirtualQuantity": str(PROCESSORS),
    },
    {
        "AllocationUnits": "byte * 2^20",
        "Description": "Memory Size",
        "ElementName": f"{MEMORY_MB} MB of memory",
        "InstanceID": "2",
        "ResourceType": "4",
        "VirtualQuantity": str(MEMORY_MB),
    },
    {
        "Address": "0",
        "Description": "SCSI Controller",
        "ElementName": "SCSI controller 0",
        "InstanceID": "3",
        "ResourceSubType": "VirtualSCSI",
        "ResourceType": "6",
    },
    {
        "Address": "0",
        "Description": "IDE Controller",
        "ElementName": "IDE 0",
        "InstanceID": "4",
        "ResourceType": "5",
    },
    {
        "AddressOnParent": "0",
        "ElementName": "Hard disk 1",
        "HostResource": "ovf:/disk/vmdisk1",
        "InstanceID": "5",
        "Parent": "3",
        "ResourceType": "17",
    },
    {
        "AddressOnParent": "0",
        "AutomaticAllocation": "false",
        "ElementName": "CD/DVD drive 1",
        "InstanceID": "6",
        "Parent": "4",
        "ResourceSubType": "vmware.cdrom.remotepassthrough",
        "ResourceType": "15",
    },
)

_CONFIG: Final = (
    ("firmware", "bios"),  # both are on the disk; BIOS is what the tests boot with this SCSI controller
    ("tools.syncTimeWithHost", "false"),  # systemd-timesyncd does it, and two would disagree
    ("powerOpInfo.powerOffType", "soft"),  # VMware's tools end it in order: virtual IPs move first
    ("powerOpInfo.resetType", "soft"),
)
