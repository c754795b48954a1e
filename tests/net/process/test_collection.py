"""The collector of reference cycles, beside somebody who makes much that stays."""

import gc
from pathlib import Path

import pytest

from appliance.model.paths import Paths
from appliance.net.process.collection import no_collection
from appliance.net.sources import judging

pytestmark = pytest.mark.sockets


def test_it_goes_on_afterwards():
    """It stands still inside, where this divides by zero, and is on again after an error, too."""
    with pytest.raises(ZeroDivisionError), no_collection():
        _ = 1 / gc.isenabled()
    assert gc.isenabled()


def test_what_was_off_stays_off():
    """Whoever has turned it off finds it so."""
    with no_collection():
        with no_collection():
            pass
        assert not gc.isenabled()


def test_files_are_judged_without_collections(tmp_path: Path):
    """Reading 20,000 values, of which each is kept, begins no collection that would look through them."""
    begun: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        begun.append(phase)

    (tmp_path / "a.yaml").write_text("pools:\n" + "".join(f"  p{n}: {{ retries: 3 }}\n" for n in range(5000)))
    gc.collect()
    gc.callbacks.append(note)
    try:
        judged = judging.judge(Paths(config=tmp_path / "a.yaml"), number=1)
    finally:
        gc.callbacks.remove(note)
    assert judged.snapshot is not None
    assert len(begun) < 20  # what follows each of the two steps; it was hundreds
