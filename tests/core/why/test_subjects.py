"""What operators call things: names, names of servers alone, addresses, and slips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.snapshots import (
    bind,
    frontend,
    group,
    pool,
    server,
    snapshot,
    snapshots,
    virtual_router,
)

from appliance.core.why.explanation import Kind
from appliance.core.why.subjects import meant, similar, subjects

pytestmark = pytest.mark.pure

SITE = snapshot(
    groups=[
        group(
            "api",
            frontends=[
                frontend("api", pool="masters", binds=[bind(9445, host="::")]),
                frontend("config", pool="config", binds=[bind(22623, host="10.0.0.7")]),
            ],
        )
    ],
    pools=[
        pool("masters", servers=[server("m0", port=6443, host="10.0.0.34"), server("m1", host="10.0.0.35")]),
        pool("config", servers=[server("m0", port=22623, host="10.0.0.34")]),
    ],
    virtual_routers=[virtual_router("api", addresses=("10.0.0.200/24", "fd00::1/64"))],
)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("masters/m0", ["server masters/m0"]),
        ("m0", ["server masters/m0", "server config/m0"]),
        ("m1", ["server masters/m1"]),
        ("masters", ["pool masters"]),
        ("config", ["frontend config", "pool config"]),
        ("api", ["vip api", "frontend api"]),
        ("api/api", ["frontend api"]),
        ("10.0.0.200", ["vip api"]),
        ("10.0.0.200/24", ["vip api"]),
        ("fd00:0::1", ["vip api"]),
        ("[fd00::1]", ["vip api"]),
        ("10.0.0.34", ["server masters/m0", "server config/m0"]),
        ("10.0.0.34:6443", ["server masters/m0"]),
        ("9445", ["frontend api"]),
        (":9445", ["frontend api"]),
        ("*:9445", ["frontend api"]),
        ("[::]:9445", ["frontend api"]),
        ("10.0.0.7", ["frontend config"]),
        ("nothing", []),
    ],
)
def test_what_is_meant(text: str, labels: list[str]):
    """Everything that has the name, or that the address is one of."""
    assert [f"{each.kind} {each.label}" for each in meant(text, SITE)] == labels


def test_the_kind_decides():
    """Of several things with one name."""
    assert [each.kind for each in meant("api", SITE, kind=Kind.FRONTEND)] == [Kind.FRONTEND]
    assert meant("masters", SITE, kind=Kind.VIRTUAL_IP) == ()
    assert meant("x", snapshot(groups=[], pools=[])) == ()


def test_slips():
    """What resembles the name most, also a server's name without its pool."""
    assert similar("mastrs/m0", SITE)[0] == "masters/m0"
    assert "m1" in similar("m11", SITE)
    assert similar("zzzzzzz", SITE) == ()


@given(snapshots(), st.text(max_size=20))
def test_any_text_is_understood(made: object, text: str):
    """Whatever is typed gives subjects of the snapshot, and every subject is found by its label."""
    known = subjects(made)  # type: ignore[arg-type]  # drawn
    assert set(meant(text, made)) <= set(known)  # type: ignore[arg-type]  # drawn
    for each in known:
        assert each in meant(each.label, made, kind=each.kind)  # type: ignore[arg-type]  # drawn
