"""Improvements to what a keepalived.conf says. None of them is part of the translation."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from appliance.translation.keepalived.meaning.instance_draft import Instance
from appliance.translation.translation import Proposal

_COPIED_IDS: Final = frozenset(("1", "50", "51", "52", "100"))
"""Router ids that people copy from examples; kubeadm's ha-considerations.md warns of 51."""

_SLOW: Final = Decimal(1)


def proposals(instances: Iterable[Instance], *, forwards: bool) -> tuple[Proposal, ...]:
    """Return the proposals by instance; `forwards`: there are virtual servers for the kernel."""
    program = "forward" if forwards else "proxy-api"
    return tuple(each for instance in instances for each in _of(instance, program))


def _of(instance: Instance, program: str) -> Iterator[Proposal]:
    yield from _router_id(instance)
    yield from _password(instance)
    yield from _faster(instance)
    yield from _checks(instance, program)
    yield from _addresses(instance)


def _router_id(instance: Instance) -> Iterator[Proposal]:
    word = instance.router_id
    if word is None or word.text not in _COPIED_IDS or instance.peers:
        return
    yield Proposal(
        name="router-id",
        message=(
            f"`{instance.name}` has the router id {word.text}, as many examples do: another pair on the "
            "segment may use it, too. Choose an unused one, on all routers at once"
        ),
        place=word.place,
        example=_yaml(instance, "router_id: 217"),
    )


def _password(instance: Instance) -> Iterator[Proposal]:
    word = instance.auth_pass
    if word is None or not instance.has("auth"):
        return
    yield Proposal(
        name="hmac",
        message=(
            f"the password of `{instance.name}` is sent in clear text. Once all its routers are appliances "
            "or keepalived 2.4, version 3 can sign adverts"
        ),
        place=word.place,
        example=_yaml(
            instance, "version: 3", "auth:", "  hmac:", "    keys: {1: file:/etc/appliance/vrrp.key}"
        ),
    )


def _faster(instance: Instance) -> Iterator[Proposal]:
    time, place = instance.advert or (_SLOW, instance.head.place)
    if time < _SLOW:
        return
    yield Proposal(
        name="faster",
        message=(
            f"a dead router of `{instance.name}` is detected after {3 * time:f} to {4 * time:f} s. Version "
            "3 with 100 ms, on all routers at once, takes 0.3 to 0.4 s"
        ),
        place=place,
        example=_yaml(instance, "version: 3", "advert: 100ms"),
    )


def _checks(instance: Instance, program: str) -> Iterator[Proposal]:
    for name, watched in instance.tracks.items():
        if watched.kind != "script":
            continue
        yield Proposal(
            name="built-in-check",
            message=(
                f"`{name}` runs a command for each check. If it tests a URL or a port, the appliance can do "
                "so itself, without a process and without curl in its image"
            ),
            place=watched.target_place,
            example=_yaml(instance, "track:", f"  {name}:", "    http: https://localhost:6443/readyz"),
        )
    if not instance.tracks:
        yield Proposal(
            name="track",
            message=(
                f"no check shows whether this router can serve `{instance.name}`: it would keep the "
                "addresses even with a dead proxy"
            ),
            place=instance.head.place,
            example=_yaml(instance, "track:", "  serving:", f"    program: {program}"),
        )
    weighed = [name for name, each in instance.tracks.items() if each.weight]
    if weighed and instance.has("preempt"):
        yield Proposal(
            name="fault",
            message=(
                f"with `nopreempt` the weight of {', '.join(f'`{each}`' for each in weighed)} has no "
                "effect: a backup does not take over from a lower priority. Without a weight, down is a "
                "fault"
            ),
            place=instance.tracks[weighed[0]].place,
        )


def _addresses(instance: Instance) -> Iterator[Proposal]:
    for word in instance.bare_addresses:
        yield Proposal(
            name="prefix-length",
            message=(
                f"{word.text} has no prefix length and becomes a host address, as in keepalived. With the "
                "length of its network it is like the other addresses of the interface"
            ),
            place=word.place,
        )


def _yaml(instance: Instance, *lines: str) -> str:
    """Return lines below a virtual IP as YAML of our configuration."""
    return "\n".join(["virtual_ips:", f"  {instance.name}:", *(f"    {line}" for line in lines), ""])
