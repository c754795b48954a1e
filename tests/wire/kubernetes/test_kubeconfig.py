"""A kubeconfig is read as kubectl reads it, and what we do not do is refused by name."""

import base64

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.kubernetes.kubeconfig import KubeconfigError, decode

pytestmark = pytest.mark.pure

Values = dict[str, object]


def text(
    *,
    cluster: Values | None = None,
    user: Values | None = None,
    context: Values | None = None,
    **changes: object,
) -> bytes:
    """Return a kubeconfig with two contexts, of which the second is the current one."""
    values = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "admin",
        "contexts": [
            {"name": "other", "context": {"cluster": "x", "user": "x"}},
            {"name": "admin", "context": {"cluster": "ocp4", "user": "me", **(context or {})}},
        ],
        "clusters": [
            {
                "name": "ocp4",
                "cluster": {"server": "https://api-int.ocp4.example.com:6443", **(cluster or {})},
            }
        ],
        "users": [{"name": "me", "user": {"token": "abc", **(user or {})}}],
        **changes,
    }
    return yaml.safe_dump(values).encode()


def test_the_current_context_counts():
    """Server, authority and identity are those that it names."""
    data = base64.b64encode(b"PEM").decode()
    found = decode(
        text(
            cluster={"certificate-authority-data": data, "tls-server-name": "kubernetes"},
            user={"client-certificate": "me.crt", "client-key-data": data, "tokenFile": "/token"},
        )
    )
    assert (found.host, found.port, found.server_name) == ("api-int.ocp4.example.com", 6443, "kubernetes")
    assert (found.ca, found.ca_file) == (b"PEM", None)
    assert (found.token, found.token_file) == ("abc", "/token")
    assert (found.certificate_file, found.key) == ("me.crt", b"PEM")
    assert decode(text(cluster={"server": "https://[2001:db8::1]"})).port == 443


@pytest.mark.parametrize(
    ("kubeconfig", "words"),
    [
        (b"a: [", "line 1"),
        (text(users=[]), "users: no user"),
        (text(users="x"), "users: no user"),
        (text(users=["x", {"name": "me", "user": 7}]), "users: no user"),
        (text(contexts=[]), "contexts: no context"),
        (text(context={"cluster": None}), "context.cluster: is missing"),
        (text(**{"current-context": 7}), "current-context: must be text"),
        (text(user={"exec": {"command": "aws"}}), "user.exec: not supported"),
        (text(user={"auth-provider": {"name": "gcp"}}), "user.auth-provider: not supported"),
        (text(user={"password": "secret"}), "user.password: not supported"),
        (text(cluster={"insecure-skip-tls-verify": True}), "cluster.insecure-skip-tls-verify: not supported"),
        (text(cluster={"proxy-url": "http://proxy"}), "cluster.proxy-url: not supported"),
        (text(cluster={"server": "http://a:80"}), "cluster.server: must be `https://HOST:PORT`"),
        (text(cluster={"server": "https://a/path"}), "cluster.server: must be"),
        (text(cluster={"server": "https://a:99999"}), "cluster.server: is no URL"),
        (text(cluster={"certificate-authority-data": "%"}), "certificate-authority-data: is no base64"),
        (text(user={"token": "a\nb"}), "user.token: must be text"),
    ],
)
def test_what_cannot_be_used_is_named(kubeconfig: bytes, words: str):
    """Each refusal names the key, and shows no secret."""
    with pytest.raises(KubeconfigError, match=words.replace("[", r"\[")) as caught:
        decode(kubeconfig)
    assert "secret" not in str(caught.value)
    assert "abc" not in str(caught.value)


@given(st.binary(max_size=200))
def test_garbage_never_escapes(data: bytes):
    """Any bytes give KubeconfigError: so few are never a kubeconfig."""
    with pytest.raises(KubeconfigError):
        decode(data)
