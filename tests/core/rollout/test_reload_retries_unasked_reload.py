"""Whether a file that changed is to be obeyed though nobody asked."""

import pytest

from appliance.core.rollout.reload_retries import UnaskedReload

pytestmark = pytest.mark.pure


def looks(watch: UnaskedReload, digests: str) -> list[bool]:
    """Return what each of a row of looks says; every one that is to be obeyed is judged."""
    said = []
    for digest in digests:
        said.append(watch.settled(digest))
        if said[-1]:
            watch.judged(digest)
    return said


def test_the_file_at_the_start_is_judged_once():
    """Nobody knows after a restart what became of it: the second look says so, and no later one."""
    assert looks(UnaskedReload(), "aaaa") == [False, True, False, False]


def test_a_file_that_is_being_written_is_left_alone():
    """What differs at every look is not whole; when it rests it is obeyed."""
    assert looks(UnaskedReload(), "abcdd") == [False, False, False, False, True]


def test_what_a_reload_has_judged_is_not_obeyed_again():
    """Whoever says `reload` is faster, and a refusal is told once."""
    watch = UnaskedReload()
    assert looks(watch, "aa") == [False, True]
    watch.judged("b")
    assert looks(watch, "bbb") == [False, False, False]
    assert looks(watch, "aa") == [False, True]
