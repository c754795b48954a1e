"""Writes the configuration made from properties to the operator's file, unless a person has edited that.

Only root and the group `appliance` can read the files: a configuration may contain a password. A write raises
OSError.
"""

import contextlib
import grp
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.guest.record import Record, digest, digest_of
from appliance.model.guest.appliance_settings import GuestSettings
from appliance.model.guest.placement import Choice, Placed, Placement, placement
from appliance.model.guest.report import GuestProblem
from appliance.net.files.atomic_write import remove_scratch_files, write_atomically

_GROUP: Final = "appliance"
_MODE: Final = 0o640
_REFUSED: Final = ".refused"
_NEW: Final = ".from-properties"
_EDITED: Final = ".edited"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationOutcome:
    """The report about the configuration."""

    problems: tuple[GuestProblem, ...] = ()
    notes: tuple[str, ...] = ()


def place(path: Path, settings: GuestSettings, *, record: Record, choice: Choice) -> ConfigurationOutcome:
    """Write the configuration made from properties to `path`, or next to it, or nowhere; see `placement`."""
    remove_scratch_files(path)
    if settings.yaml is None:
        _beside(path, _NEW).unlink(missing_ok=True)
    if settings.refused is not None:
        return _refuse(path, settings.refused)
    _beside(path, _REFUSED).unlink(missing_ok=True)
    if settings.yaml is None:
        return ConfigurationOutcome(notes=tuple(_why_nothing(path, settings)))
    return _place(path, settings.yaml, digest_of(settings.given), record=record, choice=choice)


def _refuse(path: Path, text: bytes) -> ConfigurationOutcome:
    refused = _beside(path, _REFUSED)
    # Kept, so that a person can see what the messages refer to.
    _write(refused, text)
    stays = f", and {path} stays as it was" if path.exists() else ""
    return ConfigurationOutcome(notes=(f"the configuration is refused: it is in {refused}{stays}",))


def _why_nothing(path: Path, settings: GuestSettings) -> Iterator[str]:
    wrong = bool(settings.problems)
    if path.exists():
        yield f"{path} stays as it was: " + (
            "the properties have problems" if wrong else "the properties say nothing about it"
        )
    elif not wrong:
        yield (
            "no property describes the cluster: shut the machine down, fill in the properties "
            "of the section Cluster, or `config`, power it on; "
            f"or write {path}, then `sudo systemctl restart appliance`"
        )


def _place(
    path: Path, text: bytes, properties: str, *, record: Record, choice: Choice
) -> ConfigurationOutcome:
    wanted = Placed(yaml=digest(text), properties=properties)
    current = path.read_bytes() if path.exists() else None
    decided = placement(
        wanted=wanted,
        current=None if current is None else digest(current),
        last=record.placed(),
        intended=record.intended(),
        choice=choice,
    )
    if decided is Placement.BESIDE:
        _write(_beside(path, _NEW), text)
        return ConfigurationOutcome(problems=(GuestProblem(message=_both_ways_out(path)),))
    if decided is Placement.OVERWRITE and current is not None:
        _write(_unused(path), current)
    if decided in (Placement.WRITE, Placement.OVERWRITE):
        # A power cut may come between the file and its record: the recorded intention identifies the file as
        # ours.
        record.keep_intended(wanted)
        _write(path, text)
    if decided is Placement.SAME:
        _set_access(path)
    if decided is not Placement.EDITED or choice is Choice.KEEP:
        record.keep_placed(wanted)
    _beside(path, _NEW).unlink(missing_ok=True)
    return ConfigurationOutcome(notes=tuple(_note(path, decided)))


def _note(path: Path, decided: Placement) -> Iterator[str]:
    match decided:
        case Placement.EDITED:
            yield f"{path} was edited on this machine and stays unchanged; the properties differ"
        case Placement.WRITE | Placement.OVERWRITE:
            yield f"{path} was written from the properties"
        case Placement.SAME | Placement.BESIDE:
            return


def _both_ways_out(path: Path) -> str:
    return (
        f"{path} was edited on this machine, and the properties say something new, which is in "
        f"{_beside(path, _NEW)}: `sudo appliance guest apply --overwrite` takes that and keeps the edited "
        f"one as {_unused(path).name}; `sudo appliance guest apply --keep` stays with the edited one"
    )


def _unused(path: Path) -> Path:
    """Return an unused name for the edited file, so that no earlier one is lost."""
    names = (_beside(path, _EDITED + (f".{number}" if number else "")) for number in itertools.count())
    return next(each for each in names if not each.exists())


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _write(path: Path, text: bytes) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    remove_scratch_files(path)
    write_atomically(path, text, mode=_MODE, group=_group())


def _set_access(path: Path) -> None:
    os.chown(path, -1, _group())
    path.chmod(_MODE)


def _group() -> int:
    """Return the group that may read the files; without one, -1, for which chown(2) changes nothing."""
    with contextlib.suppress(KeyError):
        return grp.getgrnam(_GROUP).gr_gid if os.geteuid() == 0 else -1
    return -1
