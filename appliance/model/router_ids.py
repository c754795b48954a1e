"""Virtual router ids as OpenShift derives them from the cluster's name.

Bit for bit those that `runtimecfg vr-ids` prints (openshift/baremetal-runtimecfg, pkg/utils/utils.go and
pkg/config/node.go), because a node that runs keepalived must find the same ids as one that runs us.
"""

from dataclasses import dataclass


class ClusterNameError(ValueError):
    """There is no cluster name to derive ids from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterIds:
    """The ids of one cluster, each 1..239."""

    api: int
    ingress: int


def router_ids(cluster: str) -> RouterIds:
    """Return the ids of the cluster of that name; raises ClusterNameError for an empty one."""
    if not cluster:
        raise ClusterNameError("Cluster name can't be empty")
    api = fletcher8(f"{cluster}-api") + 1
    ingress = fletcher8(f"{cluster}-ingress") + 1
    return RouterIds(api=api, ingress=ingress + 1 if ingress == api else ingress)


def router_id(configured: int | None, name: str, *, cluster: str | None) -> int:
    """Return the configured id, otherwise the derived one; 0 if none can be derived."""
    return configured or derived(name, cluster=cluster) or 0


def derived(name: str, *, cluster: str | None) -> int | None:
    """Return the id of a virtual IP by its name: `api` or `ingress`, or a name that begins so, as `api-v6`.

    None if the name or the cluster's name determines none. Both families may have the same id (RFC 9568
    s.1.3).
    """
    role = name.partition("-")[0]
    if not cluster or role not in ("api", "ingress"):
        return None
    ids = router_ids(cluster)
    return ids.api if role == "api" else ids.ingress


def fletcher8(text: str) -> int:
    """Return the checksum that Go's uint8 arithmetic gives over the UTF-8 bytes, 0x00..0xEE."""
    low = high = 0
    # A byte from the command line that is not UTF-8 arrives as a surrogate; Go would have taken it as it is.
    for byte in text.encode(errors="surrogateescape"):
        low = ((low + byte) & 0xFF) % 15
        high = (high + low) % 15
    return high << 4 | low
