"""A virtual server as a frontend with `forward: kernel`, and a pool of its servers."""

from collections.abc import Mapping
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.model.messages.problems import FilePosition
from appliance.model.rules.frontend_rules import MACHINE_CONFIG_PORT
from appliance.model.server_weights import MOST_WEIGHT
from appliance.model.snapshot.pools import Balance
from appliance.translation.keepalived.meaning.values import own_name
from appliance.translation.keepalived.virtual_servers.check_times import Keys
from appliance.translation.keepalived.virtual_servers.checkers import plain
from appliance.translation.keepalived.virtual_servers.real_server import RealServer
from appliance.translation.keepalived.virtual_servers.virtual_server import (
    SCHEDULERS,
    USUAL,
    Scheduler,
    VirtualServer,
)
from appliance.translation.translation import Outcome
from appliance.translation.tree_builder import TreeBuilder

_EVERYBODY: Final = {4: "0.0.0.0/0", 6: "::/0"}
_FORWARDED: Final = (
    "nftables forwards instead of IPVS (`forward: kernel`): servers see the clients' addresses as before, "
    "and this node remains their return route"
)
_KEPT: Final = (
    "a hash of a client's address chooses its server (`balance: source`), as long as the servers are the "
    "same, not for a set time"
)
_ONE_FOR_ALL: Final = (
    "sessions stay with a server that is down if all servers of a pool set this, and these do not"
)


def frontend(server: VirtualServer, *, pool: str) -> TreeBuilder:
    """Return the frontend of a virtual server."""
    place = server.head.place
    method = server.method.place if server.method else place
    found = TreeBuilder(place)
    for each in server.addresses:
        found.append(("bind",), str(each), server.head.values[0].place)
    found.put(("pool",), pool, place)
    if _serves_machine_config(server):
        found.append(("allow",), _EVERYBODY[6 if ":" in server.address.host else 4], place)
        reason = (
            f"port {MACHINE_CONFIG_PORT} serves machine configuration, which holds secrets: access for "
            "everybody must be set explicitly (`allow`)"
        )
        server.ledger.change(place, reason)
    found.put(("forward",), "kernel", method)
    found.put(("masquerade",), "auto", method)
    server.ledger.change(method, _FORWARDED)
    return found


def _serves_machine_config(server: VirtualServer) -> bool:
    ports = {*(each.port for each in server.addresses), *(each.address.port for each in server.servers)}
    return MACHINE_CONFIG_PORT in ports


def pool(
    server: VirtualServer, servers: Mapping[Endpoint, RealServer], checks: Mapping[Endpoint, Keys | None]
) -> TreeBuilder:
    """Return the pool of a virtual server, with the check of each of its servers."""
    found = TreeBuilder(server.head.place)
    scheduler = _balance(server, found)
    common = _common(checks)
    if common is not None:
        _put_check(found, (), common)
    elif not any(checks.values()):
        found.put(("check",), value=False, place=server.head.place)
    _put_on_down(server, servers, found)
    weights = _weights(server, servers, scheduler)
    names: set[str] = set()
    for key, each in servers.items():
        name = own_name(f"{key.host}-{key.port}", names)
        names.add(name)
        path, place = ("servers", name), each.head.place
        found.put((*path, "address"), str(key), place)
        weight, weight_place = weights[key]
        if weight != 1:
            found.put((*path, "weight"), weight, weight_place)
        own = checks[key]
        if common is None and own is not None:
            _put_check(found, path, own)
        elif own is None and any(checks.values()):
            found.put((*path, "check"), value=False, place=place)
    _put_sorry(server, found)
    return found


def _balance(server: VirtualServer, found: TreeBuilder) -> Scheduler:
    """Write the algorithm; return the scheduler, which decides whether weights count."""
    word = server.scheduler
    scheduler = SCHEDULERS[word.text if word else USUAL]
    hashes = scheduler.balance is Balance.SOURCE
    if server.persistence is not None:
        found.put(("balance",), Balance.SOURCE.value, server.persistence)
        server.ledger.change(server.persistence, _KEPT)
        server.ledger.mark([word.place] if word else [], Outcome.IGNORED, "the client's address chooses")
    else:
        _choose(server, scheduler, found)
    if server.by_port and (server.persistence or not hashes):
        server.ledger.ignore(server.by_port, "applies to `sh` and `mh` only")
    return scheduler


def _choose(server: VirtualServer, scheduler: Scheduler, found: TreeBuilder) -> None:
    """Write the algorithm nearest to a scheduler, and note the difference."""
    word = server.scheduler
    place = word.place if word else server.head.place
    if scheduler.balance is Balance.SOURCE and server.by_port:
        found.put(("balance",), Balance.HASH.value, place)
        found.put(("hash_on",), ["source", "source-port"], server.by_port)
    elif scheduler.balance is not Balance.ROUNDROBIN:
        found.put(("balance",), scheduler.balance.value, place)
    if scheduler.reason:
        name = "" if word else f"`{USUAL}`, which is keepalived's default: "
        server.ledger.change(place, f"{name}{scheduler.reason}")


def _weights(
    server: VirtualServer, servers: Mapping[Endpoint, RealServer], scheduler: Scheduler
) -> dict[Endpoint, tuple[int, FilePosition]]:
    """Return the weights of the servers within our range, if they count at all."""
    usual = server.weight or (1, server.head.place)
    said = {key: each.weight or usual for key, each in servers.items()}
    found = {}
    most = max(number for number, _ in said.values())
    for key, (number, place) in said.items():
        weight = number
        if scheduler.alike and number > 1:
            weight = 1
            server.ledger.ignore(place, "servers take turns whatever their weight, as with `rr` and `lc`")
        elif most > MOST_WEIGHT and number:
            weight = max(round(number * MOST_WEIGHT / most), 1)
            server.ledger.change(
                place, f"a weight is at most {MOST_WEIGHT}: {weight}, in proportion to the others"
            )
        found[key] = (weight, place)
    return found


def _common(checks: Mapping[Endpoint, Keys | None]) -> Keys | None:
    """Return the check that all servers share, None if they differ."""
    first, *others = checks.values()
    alike = first is not None and all(each is not None and plain(each) == plain(first) for each in others)
    return first if alike else None


def _put_check(found: TreeBuilder, path: tuple[str, ...], keys: Keys) -> None:
    for key, (value, place) in keys.items():
        found.put((*path, "check", key), value, place)


def _put_on_down(server: VirtualServer, servers: Mapping[Endpoint, RealServer], found: TreeBuilder) -> None:
    """Keep the sessions of a server that is down, if keepalived would only set its weight to 0."""
    places = [each.inhibits or server.inhibits for each in servers.values()]
    said = [each for each in places if each is not None]
    if said and len(said) == len(places):
        found.put(("on_down",), "keep", said[0])
        return
    for place in said:
        server.ledger.change(place, _ONE_FOR_ALL)


def _put_sorry(server: VirtualServer, found: TreeBuilder) -> None:
    quorum = server.quorum
    if server.sorry is None:
        if quorum is not None:
            server.ledger.ignore(quorum[1], "has no effect without `sorry_server` and commands")
        return
    endpoint, place = server.sorry
    path = ("servers", own_name(f"sorry-{endpoint.host}-{endpoint.port}"))
    found.put((*path, "address"), str(endpoint), place)
    found.put((*path, "backup"), value=True, place=place)
    found.put((*path, "check"), value=False, place=place)
    if quorum is not None and quorum[0] > 1:
        reason = (
            "`sorry_server` is used when no server is up: below the quorum the servers that are up continue"
        )
        server.ledger.change(quorum[1], reason)
