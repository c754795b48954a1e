"""The networks that this machine is in: the addresses of its interfaces with their prefix lengths."""

from appliance.net.netlink.address_messages import all_addresses, decode_address
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.rtnetlink import readable


def networks() -> tuple[str, ...]:
    """Return the addresses of all interfaces, `192.0.2.1/24`; raises OSError."""
    with Requests() as requests:
        return tuple(
            sorted({each.address for each in readable(decode_address, requests.dump(all_addresses()))})
        )
