"""The OVF descriptor (DMTF DSP0243 1.1): hardware, and the form that appliance.model.guest_properties has.

What it asks of vSphere is what Debian's kernel for virtual machines can drive: VMXNET3, VMware's paravirtual
SCSI, and an IDE CD-ROM, by which properties reach a machine without VMware's tools.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

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
    network = _sub(section, "Network", name=_NETWORK)
    _text(network, "Description", "Where clients, servers and the other load balancer are")


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
    for item in _ITEMS:
        element = _sub(section, "Item")
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
    )
    _text(element, "Label", each.label)
    _text(element, "Description", each.description)


def _sub(parent: ET.Element, tag: str, /, **attributes: str) -> ET.Element:
    return ET.SubElement(
        parent, f"{{{OVF}}}{tag}", {f"{{{OVF}}}{key}": value for key, value in attributes.items()}
    )


def _text(parent: ET.Element, tag: str, text: str) -> None:
    _sub(parent, tag).text = text


_NETWORK: Final = "VM Network"

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
    {
        "AddressOnParent": "7",
        "AutomaticAllocation": "true",
        "Connection": _NETWORK,
        "Description": "VMXNET3 ethernet adapter",
        "ElementName": "Network adapter 1",
        "InstanceID": "7",
        "ResourceSubType": "VmxNet3",
        "ResourceType": "10",
    },
)

_CONFIG: Final = (
    ("firmware", "bios"),  # both are on the disk; BIOS is what the tests boot with this SCSI controller
    ("tools.syncTimeWithHost", "false"),  # systemd-timesyncd does it, and two would disagree
    ("powerOpInfo.powerOffType", "soft"),  # VMware's tools end it in order: virtual IPs move first
    ("powerOpInfo.resetType", "soft"),
)
