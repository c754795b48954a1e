"""OVF environments as vSphere writes them."""

from xml.sax.saxutils import quoteattr

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<Environment xmlns="http://schemas.dmtf.org/ovf/environment/1" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xmlns:oe="http://schemas.dmtf.org/ovf/environment/1" '
    'xmlns:ve="http://www.vmware.com/schema/ovfenv" oe:id="lb-1" ve:vCenterId="vm-1234">\n'
    "<PlatformSection><Kind>VMware ESXi</Kind><Version>8.0.2</Version></PlatformSection>\n"
)
TAIL = (
    "<ve:EthernetAdapterSection>"
    '<ve:Adapter ve:mac="00:50:56:aa:bb:cc" ve:network="VM Network" ve:unitNumber="7"/>'
    "</ve:EthernetAdapterSection>\n</Environment>\n"
)


def section(properties: dict[str, str]) -> str:
    """Return a PropertySection."""
    lines = (f"<Property oe:key={quoteattr(k)} oe:value={quoteattr(v)}/>\n" for k, v in properties.items())
    return f"<PropertySection>\n{''.join(lines)}</PropertySection>\n"


def environment(properties: dict[str, str], *, more: str = "") -> bytes:
    """Return a whole document; `more` are sections behind our own."""
    return f"{HEAD}{section(properties)}{more}{TAIL}".encode()
