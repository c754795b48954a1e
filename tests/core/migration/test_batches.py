"""Who has the sessions of a batch, under every order and loss of messages, and the death of either node."""

from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.migration.batches import _REMEMBERED, Having, TakenBatches, after_commit

pytestmark = pytest.mark.pure

_BATCH = b"one".ljust(16)
_OTHER = b"two".ljust(16)


class _Fate(Enum):
    """What becomes of a message."""

    ARRIVES = "arrives"
    LATE = "late"  # after the next one
    LOST = "lost"


class _Taker:
    """The other node: what it has, over its deaths."""

    def __init__(self) -> None:
        self.batches = TakenBatches()
        self.run = 0
        self.prepared = True
        self.has = self.had = False

    def commit(self, *, fails: bool) -> bool:
        if not self.prepared or not self.batches.take(_BATCH):
            return False
        self.prepared = False
        if fails:
            self.batches.failed(_BATCH)
            return False
        self.has = self.had = True
        return True

    def asked(self, question: _Fate, run: int) -> tuple[bool | None, bool]:
        """Return the answer, and whether the run gives it that got the commit."""
        return (self.batches.ask(_BATCH) if question is _Fate.ARRIVES else None), self.run == run

    def dies(self) -> None:
        """Lose everything, its sessions too."""
        self.batches = TakenBatches()
        self.run += 1
        self.prepared = self.has = False


@given(
    commit=st.sampled_from(_Fate),
    settled=st.sampled_from(_Fate),
    ask=st.sampled_from(_Fate),
    answer=st.sampled_from(_Fate),
    fails=st.booleans(),
    death=st.sampled_from(["never", "before commit", "before ask", "after ask"]),
)
def test_no_session_is_ever_on_two_nodes(
    commit: _Fate, settled: _Fate, ask: _Fate, answer: _Fate, *, fails: bool, death: str
):
    """Whatever is lost or late, the giver continues only if the taker never had them, and never will."""
    taker = _Taker()
    run, same_run = taker.run, True  # of the connection on which the batch was prepared
    if death == "before commit":
        taker.dies()
    said = taker.commit(fails=fails) if commit is _Fate.ARRIVES else None
    said = said if settled is _Fate.ARRIVES else None
    if said is None:
        if death == "before ask":
            taker.dies()
        said, same_run = taker.asked(ask, run)
        said = said if answer is _Fate.ARRIVES else None
    if commit is _Fate.LATE:
        taker.commit(fails=fails)
    if death == "after ask":
        taker.dies()
    having = after_commit(taken=said, same_run=same_run)
    continues = having is Having.BACK
    assert not (continues and taker.had)
    if death == "never" and commit is _Fate.ARRIVES and settled is _Fate.ARRIVES:
        assert having is (Having.BACK if fails else Having.GONE)
        assert continues is not taker.has


def test_a_batch_is_taken_once():
    """The second commit of a batch is refused, and it counts as taken for whoever asks."""
    batches = TakenBatches()
    assert batches.take(_BATCH)
    assert not batches.take(_BATCH)
    assert batches.ask(_BATCH)


def test_what_was_asked_about_is_never_taken():
    """The giver continues with it then."""
    batches = TakenBatches()
    assert not batches.ask(_BATCH)
    assert not batches.take(_BATCH)


def test_what_failed_is_not_taken():
    """The giver continues with it then, and no late commit takes it."""
    batches = TakenBatches()
    assert batches.take(_BATCH)
    batches.failed(_BATCH)
    assert not batches.ask(_BATCH)
    assert not batches.take(_BATCH)


def test_only_so_many_are_remembered():
    """The oldest is forgotten first."""
    batches = TakenBatches()
    batches.take(_OTHER)
    for number in range(_REMEMBERED):
        batches.take(number.to_bytes(16, "big"))
    assert not batches.ask(_OTHER)
    assert batches.ask((_REMEMBERED - 1).to_bytes(16, "big"))
