"""A power cut while properties are applied: the next start makes good whatever was left half done."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.machines.guest import Guest, guest
from support.values.keys import ED25519

pytestmark = pytest.mark.programs

PROPERTIES = {
    "lb.hostname": "lb-1.example.com",
    "lb.address": "10.0.0.11/24",
    "lb.gateway": "10.0.0.1",
    "lb.ntp": "10.0.0.3",
    "lb.ssh_key": ED25519,
    "lb.cluster_name": "ocp4",
    "lb.masters": "10.0.0.34, 10.0.0.99",
}
CHANGES = ("replace", "chmod", "chown", "fchmod", "fchown", "fsync", "unlink")


class PowerCutError(BaseException):
    """Nothing runs any more: no `except Exception` may put anything right."""


def cut(monkeypatch: pytest.MonkeyPatch, *, at: int) -> Callable[[], int]:
    """Have the power fail at the nth change of a file; returns how many there have been."""
    done = 0

    def counted(change: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            nonlocal done
            done += 1
            if done == at:
                raise PowerCutError
            return change(*arguments, **named)

        return call

    for name in CHANGES:
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    return lambda: done


def tree(machine: Guest) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of every file but the report, which has the time in it."""
    return {
        str(path.relative_to(machine.root)): (path.stat().st_mode & 0o777, path.read_bytes())
        for path in machine.root.rglob("*")
        if path.is_file() and path.name != "guest.json" and "sys" not in path.relative_to(machine.root).parts
    }


def machine_of(directory: Path, properties: dict[str, str]) -> Guest:
    """Return a machine in a new folder that was told these properties."""
    directory.mkdir()
    made = guest(directory)
    made.vmware(properties)
    return made


def test_whenever_the_power_fails_the_next_start_puts_it_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Every file has its content and its mode then, as if nothing had happened, and none is left over."""
    whole = machine_of(tmp_path / "whole", PROPERTIES)
    with monkeypatch.context() as patched:
        changes = cut(patched, at=0)
        whole.apply()
    assert changes() > 10
    for number in range(1, changes() + 1):
        machine = machine_of(tmp_path / str(number), PROPERTIES)
        with monkeypatch.context() as patched:
            cut(patched, at=number)
            with pytest.raises(PowerCutError):
                machine.apply()
        for each in machine.root.rglob(f".*.{os.getpid()}"):
            each.rename(each.with_suffix(".1"))  # the next start is another process
        machine.apply()
        assert tree(machine) == tree(whole), f"cut at change {number}"
        assert machine.problems() == []
