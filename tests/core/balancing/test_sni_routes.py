"""Which pool a server name leads to: the first route that fits, however names and expressions are mixed."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from appliance.core.balancing.sni_routes import SniRoutes
from appliance.model.snapshot.frontends import SniRoute

pytestmark = pytest.mark.pure

LABELS = st.sampled_from(["a", "b", "apps", "api", ""])
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
ROUTES = st.one_of(
    st.builds(
        lambda names, wild: {"names": tuple(f"*.{each}" if wild else each for each in names)},
        st.lists(NAMES, min_size=1, max_size=3),
        st.booleans(),
    ),
    st.builds(lambda text: {"regex": text}, st.sampled_from(["^a", r"\.apps$", "B", "^api[.]", "x"])),
)


def _fits(route: SniRoute, name: str) -> bool:
    """Say it as the documentation does."""
    if route.regex:
        return bool(re.search(route.regex, name, re.IGNORECASE))
    return any(name.endswith(each[1:]) if each.startswith("*.") else name == each for each in route.names)


@example([{"names": ("api",)}, {"regex": "^a"}], ["api"])  # a name before an expression
@example([{"names": ("*.apps", "api")}, {"regex": "^b"}], ["a.apps", "b.a", "b", "api", "a.b.c"])  # each way
@given(st.lists(ROUTES, max_size=6), st.lists(NAMES, max_size=5))
def test_the_first_one_that_fits(given_routes: list[dict[str, object]], names: list[str]):
    """Look-ups find what going through the routes one by one finds, for one name after another."""
    routes = [SniRoute(pool=f"p{number}", **each) for number, each in enumerate(given_routes)]
    tried = SniRoutes(routes)
    for name in names:
        assert tried.pool(name) == next((each.pool for each in routes if _fits(each, name)), None)


def test_case_of_expressions_means_nothing():
    """Names come in lower case, and an expression may be written as it likes."""
    assert SniRoutes([SniRoute(regex="^API[A-Z]", pool="p")]).pool("apis.example.com") == "p"


def test_a_name_that_is_hard_to_search_costs_only_itself():
    """Beyond the budget no expression fits, and the next name is searched with a new one."""
    hardest = [SniRoute(regex=f"(a|b)*a(a|b){{200}}{last}", pool="p") for last in "cde"]
    routes = SniRoutes([*hardest, SniRoute(regex="^easy$", pool="q")])
    for seed in range(5):
        hard = "".join("ab"[(seed + 7 * at + at * at // 3) % 2] for at in range(250))
        assert routes.pool(hard) is None
        looked_at = [search.work for _, search in routes._searches]
        assert sum(looked_at) <= 10_000 + 4 * 250, "one byte may go beyond it, in each expression"
        assert routes.pool("easy") == "q"
