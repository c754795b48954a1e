"""Which files an `include` means."""

import pytest

from appliance.translation.keepalived.syntax.statements import MOST_ALTERNATIVES, alternatives, included

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a", ["a"]),
        ("{a,b}.conf", ["a.conf", "b.conf"]),
        ("{foo/{,cat,dog},bar}", ["foo/", "foo/cat", "foo/dog", "bar"]),
        ("a{", ["a{"]),
        ("a}b", ["a}b"]),
    ],
)
def test_braces(pattern: str, found: list[str]):
    """Braces are alternatives, as in a shell."""
    assert alternatives(pattern) == found


def test_many_alternatives():
    """They have a bound."""
    assert len(alternatives("{a,b}" * 60)) <= MOST_ALTERNATIVES


def test_included():
    """A relative pattern begins where the including file is; a wild one is sorted, without directories."""

    def matching(pattern: str) -> list[str]:
        return ["/k/conf.d/b", "/k/conf.d/a", "/k/conf.d/dir/"] if pattern == "/k/conf.d/*" else []

    def of(pattern: str) -> list[str]:
        return included(pattern, source="/k/k.conf", matching=matching)

    assert of("conf.d/*") == ["/k/conf.d/a", "/k/conf.d/b"]
    assert of("x.conf") == ["/k/x.conf"]
    assert of("/etc/x.conf") == ["/etc/x.conf"]
    assert of("none.d/*") == []
