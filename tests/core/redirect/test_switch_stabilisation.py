"""When a redirect begins and ends, by rows of looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.redirect.switch import Look, Stabilised, after

pytestmark = pytest.mark.pure

_LOOKS = {"+": Look.GOOD, "-": Look.BAD, "0": Look.NOBODY}


def _states(looks: str, *, rise: int = 3, fall: int = 11) -> str:
    """Return `o` or `.` after each look: on, or off."""
    state, shown = Stabilised(), ""
    for each in looks:
        state = after(state, _LOOKS[each], rise=rise, fall=fall)
        shown += "o" if state.on else "."
    return shown


@pytest.mark.parametrize(
    ("looks", "states"),
    [
        ("+++", "..o"),
        ("++-+++", ".....o"),  # a bad one starts the count again
        ("++0+++", ".....o"),
        ("+++" + "-" * 11, "..o" + "o" * 10 + "."),
        ("+++" + "-" * 10 + "+" + "-" * 11, "..o" + "o" * 21 + "."),
        ("+++0", "..o."),  # nobody accepts: at once
        ("+++0+++", "..o...o"),
        ("---", "..."),
        ("000", "..."),
    ],
)
def test_openshift_s_numbers(looks: str, states: str):
    """Three good looks begin it, eleven bad ones end it, and none to lead to ends it at once."""
    assert _states(looks) == states


@given(st.lists(st.sampled_from(list(Look))), st.integers(1, 5), st.integers(1, 5))
def test_it_is_never_on_where_nobody_accepts(looks: list[Look], rise: int, fall: int):
    """Whatever came before; and a streak is always shorter than what would change the state."""
    state = Stabilised()
    for look in looks:
        state = after(state, look, rise=rise, fall=fall)
        assert not (state.on and look is Look.NOBODY)
        assert state.streak < (fall if state.on else rise)
