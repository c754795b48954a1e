"""The OVF environment: the XML in which a hypervisor passes the properties of a virtual machine to its guest.

DMTF DSP0243 section 11.1. Only the machine's own PropertySection counts: those inside an Entity belong to the
other machines of a vApp. The document comes from outside, so its size is limited, and a DOCTYPE is refused:
without it there are no entities.
"""

import re
from collections.abc import Mapping
from typing import Final
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

LIMIT: Final = 1 << 20
"""Most bytes of a document: a whole configuration in one property is far smaller."""

_NAMESPACE: Final = "http://schemas.dmtf.org/ovf/environment/1"
_SECTION: Final = ["Environment", "PropertySection"]
_VMWARE: Final = "http://www.vmware.com/schema/ovfenv"
_ADAPTERS: Final = ["Environment", f"{_VMWARE} EthernetAdapterSection"]
_ADAPTER: Final = f"{_VMWARE} Adapter"
_NUMBER: Final = re.compile("[0-9]{1,9}")


_DOCUMENT: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<Environment xmlns="{namespace}" xmlns:oe="{namespace}">
  <PropertySection>
{lines}  </PropertySection>
</Environment>
"""


class OvfEnvironmentError(Exception):
    """The document is no OVF environment; the message has the reason, with line and column if known."""


def compose(properties: Mapping[str, str]) -> bytes:
    """Return a document with these properties."""
    lines = "".join(
        f"    <Property oe:key={quoteattr(key)} oe:value={quoteattr(value)}/>\n"
        for key, value in properties.items()
    )
    return _DOCUMENT.format(namespace=_NAMESPACE, lines=lines).encode()


def adapters(data: bytes) -> tuple[str, ...]:
    """Return the adapters' MAC addresses, in order, if vSphere has them; raises OvfEnvironmentError."""
    found = _read(data).adapters
    return tuple(found[number] for number in sorted(found))


def parse(data: bytes) -> dict[str, str]:
    """Return the properties by key, as written: `class.key.instance`, most with fewer parts.

    Of two properties with one key the first counts. Raises OvfEnvironmentError.
    """
    return _read(data).properties


def _read(data: bytes) -> "_EnvironmentReader":
    if len(data) > LIMIT:
        raise OvfEnvironmentError(f"has {len(data)} bytes: more than {LIMIT} are not read")
    reader = _EnvironmentReader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(data.lstrip(b" \t\r\n"), True)  # noqa: FBT003  # pyexpat has no keywords
    except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: encodings unknown to Python
        raise OvfEnvironmentError(f"is not XML: {error}") from error
    return reader


class _EnvironmentReader:
    """Keeps the path of elements to the parser's position, and collects properties and adapters."""

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}
        self.adapters: dict[int, str] = {}
        self._path: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = _local(name)
        if not self._path and local != _SECTION[0]:
            raise OvfEnvironmentError(f"is not an OVF environment: its root is <{local}>, not <Environment>")
        if self._path == _SECTION and local == "Property":
            found = {_local(each): value for each, value in attributes.items()}
            if "key" in found:
                self.properties.setdefault(found["key"], found.get("value", ""))
        if self._path == _ADAPTERS and name == _ADAPTER:
            number = attributes.get(f"{_VMWARE} unitNumber", "")
            if _NUMBER.fullmatch(number):
                self.adapters.setdefault(int(number), attributes.get(f"{_VMWARE} mac", "").lower())
        self._path.append(local)

    def end(self, _: str) -> None:
        self._path.pop()


def _local(name: str) -> str:
    """Return a name without the namespace of OVF environments; names of other namespaces do not count."""
    return name.removeprefix(f"{_NAMESPACE} ")


def _refuse_doctype(*_: object) -> None:
    raise OvfEnvironmentError("has a DOCTYPE, which an OVF environment never has")
