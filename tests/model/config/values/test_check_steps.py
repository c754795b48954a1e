"""The steps of a check: what they may say, and what is said of one that is wrong."""

import json

import pytest

from appliance.model.config.values.check_steps import SCHEMA, check_steps
from appliance.model.snapshot.pools import CheckStep

pytestmark = pytest.mark.pure


def test_steps_are_read():
    """Each key means what HAProxy's word of that name does; what is not said is nothing."""
    given = [
        {"send": "PING\r\n", "expect": "+PONG", "comment": "it speaks"},
        {"send_binary": "5155", "expect_binary": "2B4f", "negate": True, "min_recv": 5},
        {"expect_rstring": "^[+]OK", "negate": False},
    ]
    assert check_steps(given) == (
        CheckStep(send="PING\r\n", expect="+PONG", comment="it speaks"),
        CheckStep(send_binary="5155", expect_binary="2B4f", negate=True, min_recv=5),
        CheckStep(expect_rstring="^[+]OK"),
    )


KEYS = (
    *("send", "send_binary", "expect", "expect_binary", "expect_rstring"),
    *("negate", "min_recv", "comment"),
)
WRONG: list[tuple[object, str]] = [
    ("PING", "must be a list of 1 to 32 steps, such as `- {send: ..., expect: ...}`"),
    ([], "must be a list of 1 to 32 steps, such as `- {send: ..., expect: ...}`"),
    ([{"send": "x"}] * 33, "must be a list of 1 to 32 steps, such as `- {send: ..., expect: ...}`"),
    (["PING"], "step 1: must be a mapping, such as `{send: ..., expect: ...}`"),
    ([{"send": "x"}, {"sned": "x"}], "step 2: unknown key `sned`: did you mean `send`?"),
    (
        [{"xyz": 1}],
        f"step 1: unknown key `xyz`: known here are {', '.join(KEYS)}",
    ),
    ([{}], "step 1: must `send` something, `expect` something, or both"),
    ([{"comment": "x"}], "step 1: must `send` something, `expect` something, or both"),
    (
        [{"send": "x", "send_binary": "00"}],
        "step 1: has `send` and `send_binary`: leave one of them out, or make two steps of it",
    ),
    (
        [{"expect": "x", "expect_rstring": "y"}],
        "step 1: has `expect` and `expect_rstring`: leave one of them out, or make two steps of it",
    ),
    ([{"send": "x", "negate": True}], "step 1: `negate` means nothing without `expect`"),
    ([{"send": "x", "min_recv": 1}], "step 1: `min_recv` means nothing without `expect`"),
    ([{"send": ""}], "step 1: `send` must be a text of 1 to 1024 bytes, in quotes if need be"),
    ([{"send": 5}], "step 1: `send` must be a text of 1 to 1024 bytes, in quotes if need be"),
    ([{"expect": "é" * 513}], "step 1: `expect` must be a text of 1 to 1024 bytes, in quotes if need be"),
    (
        [{"send_binary": "5g"}],
        'step 1: `send_binary` must be pairs of hexadecimal digits in quotes, such as `"50494e47"`',
    ),
    (
        [{"expect_binary": 5049}],
        'step 1: `expect_binary` must be pairs of hexadecimal digits in quotes, such as `"50494e47"`',
    ),
    (
        [{"expect_binary": "00" * 1025}],
        'step 1: `expect_binary` must be pairs of hexadecimal digits in quotes, such as `"50494e47"`',
    ),
    (
        [{"expect_rstring": "(x"}],
        "step 1: `expect_rstring`: a `(` without its `)` in the regular expression `(x`",
    ),
    ([{"expect_rstring": 2}], "step 1: `expect_rstring`: must be a regular expression of 1 to 256 bytes"),
    ([{"expect": "x", "negate": "yes"}], "step 1: `negate` must be `true` or `false`"),
    ([{"expect": "x", "min_recv": 0}], "step 1: `min_recv` must be a number from 1 to 16384"),
    ([{"expect": "x", "min_recv": True}], "step 1: `min_recv` must be a number from 1 to 16384"),
    ([{"expect": "x", "min_recv": "5"}], "step 1: `min_recv` must be a number from 1 to 16384"),
    *(
        (
            [{"expect": "x", "comment": each}],
            "step 1: `comment` must be a text of 1 to 60 characters on one line",
        )
        for each in ("a\nb", 1, "")
    ),
]


@pytest.mark.parametrize(("value", "message"), WRONG)
def test_a_wrong_step_is_named(value: object, message: str):
    """By its number, its key and what would be right; what is sent is never told."""
    with pytest.raises(ValueError, match=r"^(must be a list|step)") as caught:
        check_steps(value)
    assert str(caught.value) == message


def test_the_schema_has_the_same_keys():
    """What editors offer is what is read."""
    assert tuple(json.loads(json.dumps(SCHEMA))["items"]["properties"]) == KEYS
