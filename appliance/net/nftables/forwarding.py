"""Whether this machine forwards packets between its interfaces, as `forward: kernel` needs it (ip-sysctl)."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from appliance.net.nftables.nftables import unusable
from appliance.wire.nftables.nftables_commands import Family

_SETTINGS: Final = Path("/proc/sys/net")
_FOLDERS: Final = {Family.IPV4: "ipv4", Family.IPV6: "ipv6"}
_OTHERS: Final = frozenset({"all", "default", "lo"})
_KEYS: Final = {Family.IPV4: "net.ipv4.ip_forward", Family.IPV6: "net.ipv6.conf.all.forwarding"}


def objections(families: Iterable[Family], *, settings: Path = _SETTINGS) -> Iterator[str]:
    """Yield why the kernel cannot forward packets of these IP versions: no nftables, or forwarding is off.

    Interfaces may forward although `all` does not: the setting of each interface decides.
    """
    if why := unusable():
        yield f"nftables cannot be used here: {why}"
    for family in families:
        found = sorted((settings / _FOLDERS[family] / "conf").glob("*/forwarding"))
        if not any(_is_on(each) for each in found if each.parent.name not in _OTHERS):
            version = _FOLDERS[family].removeprefix("ipv")
            yield f"no interface forwards IPv{version} packets: set `{_KEYS[family]} = 1` (sysctl.d)"


def _is_on(setting: Path) -> bool:
    try:
        return setting.read_text().strip() == "1"
    except OSError:  # the interface has gone
        return False
