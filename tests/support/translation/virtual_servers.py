"""A `virtual_server` in a test: its text, and what becomes of it."""

from support.translation.keepalived_files import mapping

from appliance.model.document.tree import Plain, plain
from appliance.translation.translation import LineOutcome, Outcome, Translation

NAME = "192.0.2.150-6443"
FIRST = "192.0.2.11-6443"


def virtual_server(
    *lines: str, address: str = "192.0.2.150 6443", protocol: str = "TCP", servers: str = ""
) -> str:
    """Return a `virtual_server` with NAT, in turn, with further lines and servers; one by default."""
    own = ("lvs_sched rr", "lvs_method NAT", f"protocol {protocol}")
    return "\n".join((f"virtual_server {address} {{", *own, *lines, servers or real_server(), "}", ""))


def real_server(*lines: str, address: str = "192.0.2.11 6443") -> str:
    """Return a `real_server` with these lines."""
    return "\n".join((f"real_server {address} {{", *lines, "}"))


def pool(translation: Translation, name: str = NAME) -> dict[str, Plain]:
    """Return a pool of a translation."""
    return mapping(plain(translation.root), "pools", name)


def check(translation: Translation) -> Plain:
    """Return the check of the pool: its only server's."""
    return pool(translation).get("check")


def refusals(translation: Translation) -> list[LineOutcome]:
    """Return the lines that are refused."""
    return [each for each in translation.lines if each.outcome is Outcome.REFUSED]
