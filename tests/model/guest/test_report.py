"""The report says what an administrator has to look for in the form, and no more than may be seen."""

import pytest
from support.values.keys import RSA

from appliance.model.guest.report import GuestProblem, foremost, shortened

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (GuestProblem(key="dns", message="wrong"), "DNS servers (dns): wrong"),
        (
            GuestProblem(key="config", message="wrong", line=3, column=1),
            "appliance.yaml (config): 3:1: wrong",
        ),
        (GuestProblem(message="wrong"), "wrong"),
    ],
)
def test_problem_names_its_property(problem: GuestProblem, told: str):
    """By the label of the form, the key, and the place where it has one."""
    assert str(problem) == told


def test_only_so_many_problems_are_kept():
    """Nobody reads more, and the report stays small; how many more there are is told."""
    many = [GuestProblem(message=str(number)) for number in range(60)]
    assert foremost(many[:50]) == tuple(many[:50])
    assert [each.message for each in foremost(many)[49:]] == ["49", "and 10 more problems"]


def test_no_text_of_others_gives_orders_to_a_terminal():
    """Nor forges a line, nor fills the screen: neither in a problem nor in a value."""
    forged = "x\n! all is well\x9b31m" + "y" * 5000
    for text in (str(GuestProblem(message=forged)), shortened({"masters": forged})["masters"]):
        assert text.isprintable()
        assert len(text) < 1100


def test_long_values_are_shortened():
    """A key is known by its end, and a configuration may hold passwords."""
    shown = shortened({"hostname": "lb-1", "config": "c2VjcmV0" * 9, "ssh_key": RSA, "dns": "10.0.0.1"})
    assert shown["hostname"] == "lb-1"
    assert shown["config"] == "(72 characters)"
    assert shown["ssh_key"].startswith("ssh-rsa AAAA")
    assert shown["ssh_key"].endswith(RSA[-16:])
    assert len(shown["ssh_key"]) < 45
    assert shortened({"page_password": "s3cret", "ca_bundle": "x" * 9}) == {
        "page_password": "(given)", "ca_bundle": "(9 characters)"
    }  # fmt: skip
    assert shortened({"ssh_key": "ssh-rsa"}) == {"ssh_key": "ssh-rsa"}
