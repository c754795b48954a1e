"""The fuzzer finds what it is there to find: each invariant is broken by a decoder that is made for it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.fuzzing import fuzzing
from support.fuzzing.fuzzing import Broken, Target, fuzz, round_trip

pytestmark = pytest.mark.pure

PATIENCE = 60.0


def forgets_the_length(data: bytes) -> int:
    """Read past the end where the first byte says so."""
    return data[data[0] if data else 0]


def never_ends(data: bytes) -> None:
    """Wait for something that does not come."""
    while data.startswith(b"\xff"):
        pass


def takes_what_is_asked_for(data: bytes) -> bytes:
    """Make room for as much as a stranger says."""
    return bytes(int.from_bytes(data[:5], "big"))


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (forgets_the_length, "IndexError"),
        (never_ends, "more than 0.1 s of processor time"),
        (takes_what_is_asked_for, "MemoryError"),
        (round_trip(bytes, lambda said: said[:-1]), "AssertionError"),
    ],
    ids=["escapes", "never ends", "takes all memory", "cannot be said again"],
)
def test_a_decoder_that_breaks_an_invariant_is_found(
    run: Callable[[bytes], object], problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """It is told with the shortest input found, which is written where it can be kept from."""
    monkeypatch.setattr(fuzzing, "FOUND", tmp_path)
    target = Target(name="planted", run=run, seeds=(b"\x02abc",), seconds=0.1)
    with pytest.raises(Broken, match=problem):
        fuzz(target, seconds=PATIENCE, seed=1)
    [kept] = (tmp_path / "planted").iterdir()
    assert len(kept.read_bytes()) <= 5


def test_what_is_kept_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """An input that once broke a decoder is tried before all others."""
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "one").write_bytes(b"kept")
    monkeypatch.setattr(fuzzing, "KEPT", tmp_path)
    seen: list[bytes] = []
    fuzz(Target(name="planted", run=seen.append, seeds=(b"valid",)), seconds=0.0, seed=1)
    assert seen[:2] == [b"kept", b"valid"]
