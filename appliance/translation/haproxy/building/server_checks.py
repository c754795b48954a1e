"""The check of one server, from its section and its line (configuration.txt, 5.2, option httpchk)."""

from collections.abc import Iterable, Mapping
from typing import Final

from appliance.model.config.values.http import Statuses
from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition
from appliance.translation.haproxy.building.values import Build
from appliance.translation.haproxy.directives.global_table import Global, verified_path
from appliance.translation.haproxy.directives.section import (
    CheckKind,
    CheckSettings,
    CheckStep,
    Placed,
    Section,
    Server,
)
from appliance.translation.haproxy.values.quantities import duration
from appliance.translation.translation import Outcome

Check = Mapping[str, Placed[Plain]]
"""The keys of our `check`, each with its place."""

WITH_REQUEST: Final = frozenset({"http", "https"})
_SENT: Final = frozenset({"send", "send_binary"})
WITH_TLS: Final = frozenset({"tls", "https"})

_INTERVAL: Final = 2000
"""Default milliseconds between checks (inter)."""

_ERROR_LIMIT: Final = 10
_OF_CHECKS: Final = frozenset(
    (
        *(
            "addr",
            "ca-file",
            "check-send-proxy",
            "check-sni",
            "check-ssl",
            "downinter",
            "error-limit",
            "fall",
        ),
        *("fastinter", "inter", "observe", "on-error", "port", "rise", "verify"),
    )
)
"""Keywords of a server that concern its check."""
_ANY_STATUS: Final = "100-599"


def server_check(server: Server, section: Section, found: Global, build: Build) -> Check | None:
    """Return the keys of a server's check, None if it is not checked."""
    options, settings = server.options, section.settings.check
    checked = options.flags.get("check")
    if checked is None or not build.take(checked):
        _tell_unchecked(server, build)
        return None
    keys: dict[str, Placed[Plain]] = {}
    tls = options.flags.get("check-ssl") if options.flag("check-ssl") and not _own(settings) else settings.tls
    kind = _kind(settings, build)
    if kind and kind.value is CheckKind.COMMAND:
        return _by_command(kind, section, server, build)
    place = tls.place if tls else kind.place if kind else checked.place
    if tls:
        build.take(tls)
    name = _TYPES[kind.value if kind else CheckKind.PLAIN, tls is not None]
    keys["type"] = Placed(value=name, place=place)
    if name in WITH_REQUEST:
        keys |= _request(settings, build)
    if name in WITH_TLS:
        keys |= _name(server, settings, build)
    keys |= _steps(kind, settings, build)
    if tls:
        keys |= _authority(server, found, build)
    keys |= _target(server, settings, build)
    keys |= _timing(server, section, build, place)
    keys |= _errors(server, build, checked.place)
    keys |= _also(kind, server, settings, found, build)
    return keys


def _by_command(kind: Placed[CheckKind], section: Section, server: Server, build: Build) -> Check:
    """Return a check by `external-check command`: its first two arguments are an address of the section.

    The server's `addr` and `port` do not concern it. It may take `inter`, or less with `timeout check`.
    """
    place, texts, times = kind.place, section.settings.texts, section.settings.times
    command, path = texts.get("external-check command"), texts.get("external-check path")
    if command is None or not command.value:
        build.report.add(Outcome.REFUSED, place, "there is no `external-check command` to run")
        return {"type": Placed(value="tcp", place=place)}
    listened = [each for bind in section.binds for each in bind.endpoints]
    first = (listened[0].host, str(listened[0].port)) if listened else ("NOT_USED", "NOT_USED")
    variables = [f"HAPROXY_PROXY_NAME={section.name}"]
    if listened:
        variables += [f"HAPROXY_PROXY_ADDR={first[0]}", f"HAPROXY_PROXY_PORT={first[1]}"]
    if path:
        variables.append(f"PATH={build.take(path)}")
    words: list[Plain] = ["/usr/bin/env", *variables, build.take(command), *first]
    build.report.add(
        Outcome.CHANGED,
        command.place,
        "the command runs as the appliance's user; the numbers of proxy and server and the server's present "
        "and most connections are not in its environment",
    )
    timing = dict(_timing(server, section, build, place))
    times_left = [each.value for name in ("connect",) if (each := times.get(name)) and times.get("check")]
    given = server.options.times.get("inter")
    limit = min([given.value if given and given.value else _INTERVAL, *times_left])
    timing["timeout"] = Placed(value=duration(limit), place=timing["timeout"].place)
    return {
        "type": Placed(value="command", place=place),
        "command": Placed(value=words, place=command.place),
        **timing,
        **_errors(server, build, place),
    }


def _own(settings: CheckSettings) -> bool:
    """Return whether the check's connection has nothing of the server's line but address and port.

    That is so for a line `connect` without the word `default`.
    """
    rules = settings.kind is not None and settings.kind.value in (CheckKind.HTTP, CheckKind.TCP_RULES)
    return rules and settings.connect is not None and not settings.as_server


def _tell_unchecked(server: Server, build: Build) -> None:
    """Report the check settings on the line of a server that is not checked."""
    options = server.options
    every = (options.times, options.numbers, options.texts, options.flags)
    places = {name: given.place for some in every for name, given in some.items()}
    for name in sorted(_OF_CHECKS & places.keys()):
        if places[name].line == server.line.number:
            build.report.add(Outcome.IGNORED, places[name], f"{name}: it has no effect without `check`")


_TYPES: Final[Mapping[tuple[CheckKind, bool], str]] = {
    (CheckKind.PLAIN, False): "tcp",
    (CheckKind.PLAIN, True): "tls",
    (CheckKind.TCP_RULES, False): "tcp",
    (CheckKind.TCP_RULES, True): "tls",
    (CheckKind.PROTOCOL, False): "tcp",
    (CheckKind.PROTOCOL, True): "tls",
    (CheckKind.TLS_HELLO, False): "tls",
    (CheckKind.TLS_HELLO, True): "tls",
    (CheckKind.HTTP, False): "http",
    (CheckKind.HTTP, True): "https",
}


def _kind(settings: CheckSettings, build: Build) -> Placed[CheckKind] | None:
    if settings.kind is None:
        return None
    build.take(settings.kind)
    if settings.connect and settings.kind.value in (CheckKind.HTTP, CheckKind.TCP_RULES):
        build.take(settings.connect)
    return settings.kind


def _steps(kind: Placed[CheckKind] | None, settings: CheckSettings, build: Build) -> dict[str, Placed[Plain]]:
    """Return what the check sends and expects: the rules `tcp-check`, or the equivalent of an option."""
    steps: list[CheckStep] = []
    if kind and kind.value is CheckKind.PROTOCOL:
        steps, place = list(settings.protocol), kind.place
    if kind and kind.value is CheckKind.TCP_RULES and settings.steps:
        steps, place = [build.take(each) for each in settings.steps], settings.steps[0].place
    return {"steps": Placed(value=[dict(each) for each in _joined(steps)], place=place)} if steps else {}


def _also(
    kind: Placed[CheckKind] | None, server: Server, settings: CheckSettings, found: Global, build: Build
) -> dict[str, Placed[Plain]]:
    """Return the connections of a check after its first one."""
    if kind is None or kind.value is not CheckKind.TCP_RULES or not settings.further:
        return {}
    for given in [each.connect for each in settings.further if each.connect]:
        build.take(given)
    also: dict[str, Plain] = {}
    for number, each in enumerate(settings.further, start=2):
        keys = _connection(each, server, settings, build)
        if keys["type"] == "tls":
            keys |= {key: placed.value for key, placed in _authority(server, found, build).items()}
        also[f"connect-{number}"] = keys
    return {"also": Placed(value=also, place=kind.place)}


def _connection(each: CheckSettings, server: Server, first: CheckSettings, build: Build) -> dict[str, Plain]:
    """Return a connection after the first; it has TLS and a PROXY header only if its own line asks for them.

    The word `default` asks for those of the server's line.
    """
    options = server.options
    encrypted = each.tls is not None or (each.as_server and options.flag("check-ssl"))
    keys: dict[str, Plain] = {"type": "tls" if encrypted else "tcp"}
    if each.steps:
        steps = [build.take(step) for step in each.steps]
        keys["steps"] = [dict(step) for step in _joined(steps)]
    if each.sni:
        keys["sni"] = each.sni.value
    address, port = each.address or options.texts.get("addr"), each.port or options.numbers.get("port")
    if each.address or first.address:
        keys["address"] = address.value if address else server.target.host
    if each.port or first.port:
        keys["port"] = port.value if port else server.target.port
    header = options.texts.get("send-proxy")
    asked = each.send_proxy or (options.flags.get("check-send-proxy") if each.as_server else None)
    if header and header.value != "none":
        keys["send_proxy"] = header.value if asked and asked.value else "none"
    return keys


def _joined(steps: Iterable[CheckStep]) -> list[CheckStep]:
    """Return the steps, with each question and its expected answer in one."""
    found: list[CheckStep] = []
    for step in steps:
        if found and not _SENT.isdisjoint(found[-1]) and len(found[-1]) == 1 and _SENT.isdisjoint(step):
            found[-1] = {**found[-1], **step}
        else:
            found.append(step)
    return found


def _request(settings: CheckSettings, build: Build) -> dict[str, Placed[Plain]]:
    keys: dict[str, Placed[Plain]] = {}
    for name, given in (("method", settings.method), ("path", settings.path), ("host", settings.host)):
        if given:
            keys[name] = Placed(value=build.take(given), place=given.place)
    if settings.body:
        keys["expect_body"] = Placed(value=build.take(settings.body), place=settings.body.place)
    if settings.statuses:
        keys["expect"] = Placed(value=_ranges(build.take(settings.statuses)), place=settings.statuses.place)
    elif settings.body:
        # With an explicit `http-check expect` the status does not count any more.
        keys["expect"] = Placed(value=_ANY_STATUS, place=settings.body.place)
    return keys


def _ranges(statuses: Statuses) -> Plain:
    written: list[Plain] = [f"{low}-{high}" if high > low else low for low, high in statuses]
    return written[0] if len(written) == 1 else written


def _name(server: Server, settings: CheckSettings, build: Build) -> dict[str, Placed[Plain]]:
    sni = server.options.texts.get("check-sni") or settings.sni
    return {"sni": Placed(value=build.take(sni), place=sni.place)} if sni else {}


def _authority(server: Server, found: Global, build: Build) -> dict[str, Placed[Plain]]:
    """Return whose certificates are accepted: anybody's, or a CA's; `ssl-hello-chk` requires none."""
    keys: dict[str, Placed[Plain]] = {}
    texts = server.options.texts
    verify, authority = texts.get("verify"), texts.get("ca-file")
    required = verify.value == "required" if verify else found.servers_verified
    if authority is None or not required:
        if required:
            build.report.add(
                Outcome.REFUSED,
                verify.place if verify else server.line.place,
                "the certificate must be verified, but no CA is set: write `ca-file FILE` or `verify none`",
            )
        return keys
    try:
        keys["verify"] = Placed(value=verified_path(found, authority.value), place=authority.place)
    except ValueError as error:
        build.report.add(Outcome.REFUSED, authority.place, str(error))
    return keys


def _target(server: Server, settings: CheckSettings, build: Build) -> dict[str, Placed[Plain]]:
    keys: dict[str, Placed[Plain]] = {}
    address = settings.address or server.options.texts.get("addr")
    port = settings.port or server.options.numbers.get("port")
    if address:
        keys["address"] = Placed(value=build.take(address), place=address.place)
    if port:
        keys["port"] = Placed(value=build.take(port), place=port.place)
    header = server.options.texts.get("send-proxy")
    of_server = None if _own(settings) else server.options.flags.get("check-send-proxy")
    asked = settings.send_proxy or of_server
    if header and header.value != "none" and _own(settings) and not settings.send_proxy:
        keys["send_proxy"] = Placed(value="none", place=header.place)
    elif header and header.value != "none" and asked and asked.value:
        keys["send_proxy"] = Placed(
            value=build.take(header), place=build.report.place(asked.place.line, asked.place.column)
        )
    return keys


def _timing(server: Server, section: Section, build: Build, place: FilePosition) -> dict[str, Placed[Plain]]:
    """Return the times: without `timeout check`, a whole check may take `inter`."""
    keys: dict[str, Placed[Plain]] = {}
    times, numbers = server.options.times, server.options.numbers
    for name, key in (("inter", "interval"), ("fastinter", "fast_interval"), ("downinter", "down_interval")):
        given = times.get(name)
        if given and given.value:
            keys[key] = Placed(value=duration(build.take(given)), place=given.place)
    interval = keys.setdefault("interval", Placed(value=duration(_INTERVAL), place=place))
    timeout = section.settings.times.get("check")
    if timeout and timeout.value:
        keys["timeout"] = Placed(value=duration(build.take(timeout)), place=timeout.place)
    else:
        keys["timeout"] = interval
    for name in ("rise", "fall"):
        count = numbers.get(name)
        if count:
            keys[name] = Placed(value=build.take(count), place=count.place)
    return keys


def _errors(server: Server, build: Build, place: FilePosition) -> dict[str, Placed[Plain]]:
    """Return how many failed connects of clients count; without `observe layer4` none do."""
    observed = server.options.texts.get("observe")
    limit, reaction = server.options.numbers.get("error-limit"), server.options.texts.get("on-error")
    if observed is None:
        for unused in (limit, reaction):
            if unused:
                build.report.add(Outcome.IGNORED, unused.place, "it has no effect without `observe layer4`")
        return {"error_limit": Placed(value=0, place=place)}
    if reaction and reaction.value != "fail-check":
        build.report.add(
            Outcome.CHANGED, reaction.place, "the server is checked at once, and the check decides"
        )
    given = limit or observed
    return {"error_limit": Placed(value=limit.value if limit else _ERROR_LIMIT, place=given.place)}
