"""What is proposed beside a translation, and that the proposed YAML is ours."""

import pytest
from support.translation.keepalived_files import instance, told, translated
from support.translation.virtual_servers import virtual_server

from appliance.model.loading.loading import load
from appliance.translation.translation import Outcome, Proposal

pytestmark = pytest.mark.pure

CHECK = "vrrp_script chk {\nscript /etc/keepalived/check_apiserver.sh\nweight 5\n}\n"
TRACKED = "track_script { chk }"


def proposed(*lines: str, router_id: int = 7) -> dict[str, Proposal]:
    """Return the proposals for an instance with these lines, by name."""
    text = CHECK + instance(*lines).replace("virtual_router_id 7", f"virtual_router_id {router_id}")
    return {each.name: each for each in translated(text).proposals}


@pytest.mark.parametrize(
    ("lines", "router_id", "name", "line"),
    [
        ((), 51, "router-id", 7),
        (("authentication {\nauth_type PASS\nauth_pass x }",), 7, "hmac", 11),
        (("advert_int 1",), 7, "faster", 9),
        ((), 7, "faster", 5),
        ((TRACKED,), 7, "built-in-check", 2),
        ((), 7, "track", 5),
        ((TRACKED, "nopreempt"), 7, "fault", 1),
        (("virtual_ipaddress { 192.0.2.9 }",), 7, "prefix-length", 9),
    ],
)
def test_proposals(lines: tuple[str, ...], router_id: int, name: str, line: int):
    """Each names the line that it is about, and its example is YAML of ours."""
    found = proposed(*lines, router_id=router_id)[name]
    assert found.place is not None
    assert found.place.line == line
    if found.example is not None:
        problems = load(found.example, source="x", number=1).problems
        assert not [each for each in problems if "unknown" in each.message], problems


@pytest.mark.parametrize(
    ("lines", "router_id", "name"),
    [
        (("unicast_peer { 192.0.2.3 }",), 51, "router-id"),
        ((), 7, "router-id"),
        (("version 3\nadvert_int 0.1",), 7, "faster"),
        (("version 3\nauthentication {\nauth_type PASS\nauth_pass x }",), 7, "hmac"),
        ((), 7, "built-in-check"),
        ((TRACKED,), 7, "track"),
        ((TRACKED,), 7, "fault"),
        ((), 7, "prefix-length"),
    ],
)
def test_nothing_to_propose(lines: tuple[str, ...], router_id: int, name: str):
    """What is good enough is left alone."""
    assert name not in proposed(*lines, router_id=router_id)


def test_what_is_forwarded_is_tracked():
    """Beside virtual servers the address belongs where their rules are."""
    text = virtual_server() + instance()
    [example] = [each.example for each in translated(text).proposals if each.name == "track"]
    assert example is not None
    assert "program: forward" in example


def test_translation_is_without_proposals():
    """What is proposed is in no line's outcome."""
    assert told(translated(instance()), Outcome.CHANGED) == []
