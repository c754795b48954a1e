"""Routes by server name: what they are in the configuration, and the bounds of a list."""

import pytest

from appliance.model.byte_pattern import BytePattern, byte_pattern
from appliance.model.config.values.sni_routes import MOST_NAMES, MOST_ROUTES, sni_routes
from appliance.model.snapshot.frontends import SniRoute

pytestmark = pytest.mark.pure


def test_routes_in_their_order():
    """Names are in lower case, each once; what is wrong with a route is in the corpus of configurations."""
    value = [{"names": ["A.b", "a.B", "*.c"], "pool": "p"}, {"regex": "^X", "pool": "q"}]
    assert sni_routes(value) == (SniRoute(names=("a.b", "*.c"), pool="p"), SniRoute(regex="^X", pool="q"))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "1 to 512 routes"),
        ([{"names": ["a"], "pool": "p"}] * (MOST_ROUTES + 1), "1 to 512 routes"),
        ([{"names": [f"n{each}" for each in range(MOST_NAMES + 1)], "pool": "p"}], "more than 4096 names"),
        ([{"regex": f"{'a' * 250}", "pool": "p"}] * 5, "more than 500 states"),
    ],
)
def test_bounds(value: object, why: str):
    """A list is as long as a client may cost, and no longer."""
    with pytest.raises(ValueError, match=why):
        sni_routes(value)


def test_an_expression_is_compiled_once(monkeypatch: pytest.MonkeyPatch):
    """Whether it is one and how many states it has are of one look."""
    compiled: list[str] = []

    def counted(text: str, *, no_case: bool = False) -> BytePattern:
        compiled.append(text)
        return byte_pattern(text, no_case=no_case)

    monkeypatch.setattr("appliance.model.config.values.sni_routes.byte_pattern", counted)
    sni_routes([{"regex": text, "pool": "p"} for text in ("^a", "b$")])
    assert compiled == ["^a", "b$"]
