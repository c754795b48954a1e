"""A configuration without its secrets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.messages.redaction import HIDDEN, SHORTEST, redacted, scrubbed

pytestmark = pytest.mark.pure

_SECRETS = st.text(
    alphabet=st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=" /?#&=@:*"),
    min_size=SHORTEST,
    max_size=30,
).map(lambda text: f"{text}Zq9")


@pytest.mark.parametrize(
    ("value", "shown", "secrets"),
    [
        (
            {"auth": {"user": "admin", "pass": "s3cret"}},
            {"auth": {"user": "admin", "pass": HIDDEN}},
            {"s3cret"},
        ),
        ({"password": None, "weight": 3}, {"password": None, "weight": 3}, set()),
        (
            {"hmac": {"keys": {"1": "aabb", "2": "file:/k"}, "send": 12}},
            {"hmac": HIDDEN},
            {"aabb", "file:/k", "12"},
        ),
        ({"keys": [{"on": True, "a": ["xxxx"]}]}, {"keys": HIDDEN}, {"xxxx"}),
        (
            {"steps": [{"send": "AUTH s3cret", "expect": "+OK"}, {"send_binary": "73336372"}, {"send": ""}]},
            {"steps": [{"send": HIDDEN, "expect": "+OK"}, {"send_binary": HIDDEN}, {"send": ""}]},
            {"AUTH s3cret", "73336372"},
        ),
        ({"password_file": "/etc/p"}, {"password_file": "/etc/p"}, set()),
        (
            {"active": ["/bin/tell", "--token", "abcdefgh"]},
            {"active": ["/bin/tell", HIDDEN, HIDDEN]},
            {"abcdefgh"},
        ),
        ({"active": []}, {"active": []}, set()),
        ({"script": "/bin/check --pw=abcdefgh now"}, {"script": f"/bin/check {HIDDEN}"}, {"--pw=abcdefgh"}),
        ({"script": "/bin/check"}, {"script": "/bin/check"}, set()),
        (
            {"http": "https://user:pa55@h:1/readyz?token=abcdefgh"},
            {"http": f"https://{HIDDEN}@h:1/readyz?{HIDDEN}"},
            {"user:pa55", "pa55", "token=abcdefgh", "abcdefgh"},
        ),
        ({"http": "https://h/readyz"}, {"http": "https://h/readyz"}, set()),
        ({"http": "https://h"}, {"http": "https://h"}, set()),
        (
            {"notify": {"webhook": "https://u:pw@hooks.example.com/services/T0000001/x"}},
            {"notify": {"webhook": f"https://{HIDDEN}@hooks.example.com/{HIDDEN}"}},
            {"u:pw", "pw", "services/T0000001/x", "services", "T0000001"},
        ),
        ({"url": "http://h/"}, {"url": "http://h/"}, set()),
        (
            {"webhook": "https://hooks.example.com?token=abcdefgh"},
            {"webhook": f"https://hooks.example.com?{HIDDEN}"},
            {"token=abcdefgh", "abcdefgh"},
        ),
        (
            {"http": "https://u:pw@h:1?token=abcdefgh/x"},
            {"http": f"https://{HIDDEN}@h:1?{HIDDEN}"},
            {"u:pw", "pw", "token=abcdefgh/x", "abcdefgh/x"},
        ),
        ({"http": "https://u:p?w@h/x"}, {"http": f"https://{HIDDEN}@h/x"}, {"u:p?w", "p?w"}),
        ({"http": "https://h#abcdefgh"}, {"http": f"https://h#{HIDDEN}"}, {"abcdefgh"}),
        ({"http": "https://h/?"}, {"http": "https://h/?"}, set()),
        (
            {"check": {"path": "/h?token=abcdefgh&x=1"}},
            {"check": {"path": f"/h?{HIDDEN}"}},
            {"token=abcdefgh&x=1", "abcdefgh"},
        ),
        ({"a": (1, "b")}, {"a": [1, "b"]}, set()),
    ],
)
def test_what_is_hidden(value: object, shown: object, secrets: set[str]):
    """By the names of keys; what was taken out is told."""
    found = redacted(value)
    assert (found.value, found.secrets) == (shown, secrets)


def test_what_is_at_a_wrong_place():
    """It is hidden with its key; it may be a word of every status, and is not looked for elsewhere."""
    found = redacted(
        {"auth": {"s3cret": "masters"}, "pools": {"p": 1}}, unknown=frozenset({("auth", "s3cret")})
    )
    assert found.value == {"auth": {HIDDEN: HIDDEN}, "pools": {"p": 1}}
    assert found.secrets == frozenset()


def test_a_text_without_secrets():
    """The longest goes first, short ones stay, and JSON's spelling is one of them."""
    assert scrubbed("abcdef abcd ab", ["ab", "abcd", "abcdef"]) == "*** *** ab"
    assert scrubbed(json.dumps({"a": 'x"\\yzé'}), ['x"\\yzé']) == '{"a": "***"}'


@given(
    st.lists(_SECRETS, min_size=1, max_size=5), st.sampled_from(["pass", "token", "hmac", "headers", "env"])
)
def test_no_secret_stays(secrets: list[str], key: str):
    """Wherever they stand below a secret key, and however JSON writes them."""
    value = {"auth": {key: secrets}, "stats": {"password": secrets[0]}, "v": [{"key": {"a": secrets[-1]}}]}
    found = redacted(value)
    text = json.dumps(found.value)
    assert found.secrets == frozenset(secrets)
    for each in secrets:
        assert each not in text
        for written in (json.dumps(value), json.dumps(value, ensure_ascii=False), " ".join(secrets)):
            assert each not in scrubbed(written, found.secrets)
