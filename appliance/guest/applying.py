"""Applies the properties of a virtual machine: from its sources to its files and the report.

It can be repeated at any time: the next start completes an interrupted one.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from appliance.guest import configuration, machine_files, sources
from appliance.guest.devices import interfaces, wait_for_devices
from appliance.guest.record import Record
from appliance.model.guest.appliance_settings import guest_settings, property_reader
from appliance.model.guest.machine_settings import machine, on_adapters
from appliance.model.guest.networks import Role
from appliance.model.guest.placement import Choice
from appliance.model.guest.report import GuestProblem, GuestReport, Origin, foremost, legible, shortened
from appliance.model.paths import Paths
from appliance.net.files.guest_report_file import publish
from appliance.wire.ovf_environment import OvfEnvironmentError, adapters, parse

_REMEMBERED: Final = (
    "no source has properties now (VMware's tool, credential, OVF ISO): those of an earlier start are used"
)
_NONE: Final = (
    "no properties were found (VMware's tool, credential, OVF ISO): "
    "the network is asked for an address, by DHCP"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedProperties:
    """The report, and as `failures` the files that could not be written, with the reasons."""

    report: GuestReport
    failures: tuple[str, ...]


def apply(
    paths: Paths, *, root: Path, environment: Mapping[str, str], choice: Choice, now: float
) -> AppliedProperties:
    """Read properties from the sources, and write the files made from them.

    All files are below `root`, which is / on a machine and a folder in tests; those of `paths` are below it
    already. `environment` is this process's (it names systemd's credentials), `choice` the operator's choice
    if the configuration was edited, `now` Unix seconds. Called by `appliance guest apply`, at each start of
    the machine.
    """
    wait_for_devices(root)
    record = Record(root)
    found, notes = _properties(root, environment, record)
    reader = property_reader(found.written)
    wanted = machine(reader)
    needed = 1 + max(each.role.adapter for each in wanted.networks)
    devices = wait_for_devices(root, number=needed, adapters=adapters(found.data) if found.data else ())
    wanted = on_adapters(reader, wanted, len(devices))
    of_networks = {each.role: devices[each.role.adapter] for each in wanted.networks if devices}
    # Settings that make the machine reachable come first, and wait for nothing that may be slow or fail.
    failures = [*_keep(record, found.data), *machine_files.configure(root, wanted, of_networks)]
    settings = guest_settings(
        reader,
        wanted,
        interfaces=interfaces(root, tuple(of_networks.values())),
        of_networks={role: each.name for role, each in of_networks.items()},
    )
    outcome = configuration.ConfigurationOutcome()
    try:
        outcome = configuration.place(paths.config, settings, record=record, choice=choice)
    except OSError as error:
        failures.append(error)
    report = GuestReport(
        origin=found.origin,
        applied_at=now,
        properties=shortened(settings.given),
        problems=foremost(
            (*found.problems, *settings.problems, *outcome.problems, *map(_problem, failures)),
        ),
        notes=tuple(map(legible, (*notes, *settings.notes, *outcome.notes))),
        login_keys=machine_files.login_keys(root),
        management=of_networks[Role.MANAGEMENT].name if Role.MANAGEMENT in of_networks else None,
    )
    try:
        publish(paths, report)
    except OSError as error:
        failures.append(error)
    return AppliedProperties(report=report, failures=tuple(map(_failure, failures)))


def _keep(record: Record, data: bytes) -> Iterator[OSError]:
    """Keep an environment for a start without an answering source; yields the error if that fails."""
    try:
        if data:
            record.keep_environment(data)
    except OSError as error:
        yield error


def _properties(
    root: Path, environment: Mapping[str, str], record: Record
) -> tuple[sources.Found, tuple[str, ...]]:
    found = sources.ask(root, environment)
    if found.origin is not Origin.NONE:
        return found, ()
    kept = record.environment()
    with contextlib.suppress(OvfEnvironmentError):
        if kept is not None:
            return replace(found, origin=Origin.REMEMBERED, data=kept, written=parse(kept)), (_REMEMBERED,)
    return found, (_NONE,)


def _problem(error: OSError) -> GuestProblem:
    return GuestProblem(message=_failure(error))


def _failure(error: OSError) -> str:
    return f"{error.filename}: cannot be written: {error.strerror}"
