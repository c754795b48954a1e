"""The configuration of the host's BIRD for the accepted one, with `engine: table`.

It is what our own BIRD would have, so mixed nodes announce equal attributes.
"""

from collections.abc import Iterator, Mapping

from appliance.model.snapshot.shared_ip import Bgp, SharedIp
from appliance.wire.bgp_examples.placeholder import PASSWORD, origin
from appliance.wire.bird.bird_config import BirdSettings, bird_config


def bird_example(
    bgp: Bgp, shared: tuple[SharedIp, ...], *, router_id: str, sources: Mapping[str, str]
) -> str:
    """Return the whole bird.conf; passwords are left out.

    `sources` are this node's addresses by neighbour: BIRD requires one for BFD over several hops.
    BIRD would choose an address of its own as its router id, which may be one of all nodes.
    """
    return "\n".join((*_lines(bgp, shared, router_id, sources), ""))


def _lines(
    bgp: Bgp, shared: tuple[SharedIp, ...], router_id: str, sources: Mapping[str, str]
) -> Iterator[str]:
    yield "# BIRD of this host announces what the appliance writes to the kernel's tables."
    yield "# Leave out what its file has already of `router id`, `log`, `protocol device` and `protocol bfd`."
    secret = [each for each in bgp.neighbors if each.password or each.password_file]
    for each in secret:
        yield f"# the password{origin(each)}"
    yield "log syslog all;"
    text = bird_config(
        BirdSettings(
            bgp=bgp,
            shared=shared,
            router_id=router_id,
            passwords={each.name: PASSWORD for each in secret},
            sources=sources,
            log="",
        )
    )
    yield from (line for line in text.splitlines() if not line.startswith("log "))
