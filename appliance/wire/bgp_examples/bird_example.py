"""The configuration of the host's BIRD for the accepted one, with `engine: table`.

It is what our own BIRD would have, so mixed nodes announce equal attributes.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from appliance.model.snapshot.shared_ip import Bgp, SharedIp
from appliance.wire.bgp_examples.placeholder import PASSWORD, origin
from appliance.wire.bird.bird_config import BirdSettings, bird_config

_ANY_ROUTER_ID: Final = "0.0.0.0"  # noqa: S104  # left out below
_OF_OURS: Final = ("router id ", "log ")


def bird_example(bgp: Bgp, shared: tuple[SharedIp, ...]) -> str:
    """Return the whole bird.conf; passwords are left out. Raises no error, whatever the passwords are."""
    return "\n".join((*_lines(bgp, shared), ""))


def _lines(bgp: Bgp, shared: tuple[SharedIp, ...]) -> Iterator[str]:
    yield "# BIRD of this host announces what the appliance writes to the kernel's tables."
    yield "# Leave out what its file has already of `router id`, `log`, `protocol device` and `protocol bfd`."
    secret = [each for each in bgp.neighbors if each.password or each.password_file]
    for each in secret:
        yield f"# the password{origin(each)}"
    yield "log syslog all;"
    if bgp.router_id:
        yield f"router id {bgp.router_id};"
    text = bird_config(
        BirdSettings(
            bgp=replace(bgp, router_id=None),
            shared=shared,
            router_id=_ANY_ROUTER_ID,
            passwords={each.name: PASSWORD for each in secret},
        )
    )
    yield from (line for line in text.splitlines() if not line.startswith(_OF_OURS))
