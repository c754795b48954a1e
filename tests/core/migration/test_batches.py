"""Who has the sessions of a batch, under every order and loss of messages, and the death of either node."""

from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.run import tiers

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


class _Where(Enum):
    """What the giver does with the sessions of a batch."""

    HERE = "here"
    OFFERED = "offered"
    COMMITTED = "committed"
    ASKING = "asking"
    AWAY = "away"
    LOST = "lost"


class _Pair:
    """Two nodes, sessions of which one byte after another is read, and messages that may be lost or late.

    A session has read `at` bytes; `read` is how many its client has sent that anybody has read.
    """

    def __init__(self, batches: int) -> None:
        self.at = dict.fromkeys(range(batches), 0)
        self.where = dict.fromkeys(range(batches), _Where.HERE)
        self.read = dict.fromkeys(range(batches), 0)
        self.there: dict[int, int] = {}
        self.prepared: dict[bytes, tuple[int, int]] = {}
        self.taken = TakenBatches()
        self.run = self.numbers = self.faults = 0
        self.number: dict[int, bytes] = {}
        self.prepared_by: dict[int, int] = {}
        self.wire: list[tuple[str, int, bytes, object]] = []

    def step(self, what: str, which: int) -> None:
        """Do one thing with one batch, or with one message."""
        batch = which % len(self.at)
        if what in ("arrives", "late", "twice", "lost"):
            if self.wire:
                place = 0 if what == "arrives" else which % len(self.wire)
                message = self.wire[place] if what == "twice" else self.wire.pop(place)
                if what != "lost":
                    self._receive(*message)
        elif what == "taker dies":
            self.faults += 1
            self.run += 1
            self.taken, self.prepared, self.there = TakenBatches(), {}, {}
        else:
            self._do(what, batch)
        for each, where in self.where.items():
            assert not (where is _Where.HERE and each in self.there), "on two nodes"
            self._read(each)

    def _do(self, what: str, batch: int) -> None:
        where = self.where[batch]
        if what == "offer" and where is _Where.HERE:
            self.numbers += 1
            self.number[batch] = self.numbers.to_bytes(16)
            self.where[batch] = _Where.OFFERED
            self.wire.append(("offer", batch, self.number[batch], self.at[batch]))
        elif what == "gives up" and where is _Where.OFFERED:
            self.where[batch] = _Where.HERE
        elif what == "gives up" and where is _Where.COMMITTED:
            self.where[batch] = _Where.ASKING
            self.wire.append(("ask", batch, self.number[batch], None))
        elif what == "gives up" and where is _Where.ASKING:
            self.faults += 1
            self._settle(batch, taken=None, same_run=False)

    def _read(self, batch: int) -> None:
        """Read the next byte of a session, by whoever has it."""
        if self.where[batch] is _Where.HERE:
            assert self.at[batch] == self.read[batch], "a byte twice, or lost"
            self.at[batch] += 1
            self.read[batch] += 1
        elif batch in self.there:
            assert self.there[batch] == self.read[batch], "a byte twice, or lost"
            self.there[batch] += 1
            self.read[batch] += 1

    def _receive(self, what: str, batch: int, number: bytes, more: object) -> None:
        where = self.where[batch] if self.number[batch] == number else _Where.LOST
        if what == "offer":
            assert isinstance(more, int)
            self.prepared[number] = batch, more
            self.wire.append(("prepared", batch, number, self.run))
        elif what == "prepared" and where is _Where.OFFERED:
            assert isinstance(more, int)
            self.where[batch], self.prepared_by[batch] = _Where.COMMITTED, more
            self.wire.append(("commit", batch, number, None))
        elif what == "commit":
            found = self.prepared.pop(number, None)
            taken = found is not None and self.taken.take(number)
            if taken and found is not None:
                self.there[found[0]] = found[1]
            if found is not None:  # a commit of nothing ends the connection
                self.wire.append(("settled", batch, number, (taken, self.run, _Where.COMMITTED)))
        elif what == "ask":
            self.wire.append(("settled", batch, number, (self.taken.ask(number), self.run, _Where.ASKING)))
        elif what == "settled":
            assert isinstance(more, tuple)
            taken, run, asked = more
            if where is asked:
                self._settle(batch, taken=taken, same_run=run == self.prepared_by[batch])

    def _settle(self, batch: int, *, taken: bool | None, same_run: bool) -> None:
        after = after_commit(taken=taken, same_run=same_run)
        self.where[batch] = {
            Having.GONE: _Where.AWAY,
            Having.BACK: _Where.HERE,
            Having.DOUBTFUL: _Where.LOST,
        }[after]


_WHAT = ["offer", "arrives", "arrives", "arrives", "late", "twice", "lost", "gives up", "taker dies"]


@settings(deadline=None, max_examples=tiers.examples(1000))
@given(
    batches=st.integers(1, 2),
    steps=st.lists(st.tuples(st.sampled_from(_WHAT), st.integers(0, 30)), min_size=20, max_size=60),
)
def test_no_byte_is_read_twice_or_lost(batches: int, steps: list[tuple[str, int]]):
    """Whatever is lost, late or doubled, whoever dies: one node has a session, a fault costs one batch."""
    pair = _Pair(batches)
    for what, which in steps:
        pair.step(what, which)
    assert sum(where is _Where.LOST for where in pair.where.values()) <= pair.faults


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
