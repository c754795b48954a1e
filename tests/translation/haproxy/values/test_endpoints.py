"""Addresses as `bind` and `server` have them."""

import pytest

from appliance.translation.haproxy.values.endpoints import ServerTarget, binds, server_target

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*:80", ["0.0.0.0:80"]),
        (":80", ["0.0.0.0:80"]),
        ("0.0.0.0:80", ["0.0.0.0:80"]),
        (":::80", ["[::]:80"]),
        ("[::]:80", ["[::]:80"]),
        ("::1:80", ["[::1]:80"]),
        ("2001:db8::1:6443", ["[2001:db8::1]:6443"]),
        ("localhost:80", ["localhost:80"]),
        ("ipv4@10.0.0.1:80", ["10.0.0.1:80"]),
        ("ipv6@:80", ["[::]:80"]),
        ("*:80,10.0.0.1:443,", ["0.0.0.0:80", "10.0.0.1:443"]),
        ("10.0.0.1:80-82", ["10.0.0.1:80", "10.0.0.1:81", "10.0.0.1:82"]),
    ],
)
def test_binds(text: str, expected: list[str]):
    """Each address and each port of a range is one of ours."""
    assert [str(each) for listened in binds(text) for each in listened.endpoints()] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",", "names no address"),
        ("10.0.0.1", "has no port"),
        ("*:", "has no port"),
        ("*:0", "is not a port"),
        ("*:65536", "is not a port"),
        ("*:82-80", "reversed"),
        ("*:1-1025", "more than 1024 ports"),
        ("/run/x.sock", "is a Unix socket"),
        ("unix@x:1", "`unix@` is not supported"),
        ("fd@3", "`fd@` is not supported"),
        ("10.0.0.300:80", "is not an IPv4 address"),
    ],
)
def test_what_is_no_bind(text: str, message: str):
    """The message says what would be right."""
    with pytest.raises(ValueError, match=r".") as caught:
        binds(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "host", "port", "offset"),
    [
        ("10.0.0.1:6443", "10.0.0.1", 6443, 0),
        ("10.0.0.1", "10.0.0.1", None, 0),
        ("10.0.0.1:", "10.0.0.1", None, 0),
        ("10.0.0.1:+1000", "10.0.0.1", None, 1000),
        ("10.0.0.1:-1", "10.0.0.1", None, -1),
        ("[2001:db8::1]:6443", "2001:db8::1", 6443, 0),
        ("[2001:db8::1]", "2001:db8::1", None, 0),
        ("2001:db8::1:6443", "2001:db8::1", 6443, 0),
        ("ipv6@2001:db8::1:6443", "2001:db8::1", 6443, 0),
        ("m0.example.com:6443", "m0.example.com", 6443, 0),
        ("web_1:80", "web_1", 80, 0),
        ("_db.my_net.:80", "_db.my_net.", 80, 0),
        (":6443", "", 6443, 0),
        ("*:6443", "", 6443, 0),
        ("0.0.0.0:6443", "", 6443, 0),
        (":::6443", "", 6443, 0),
    ],
)
def test_servers(text: str, host: str, port: int | None, offset: int):
    """The port is behind the last colon; every address is none."""
    assert server_target(text) == ServerTarget(host=host, port=port, offset=offset)


@pytest.mark.parametrize("text", ["10.0.0.300:1", "a_b!:1", "10.0.0.1:x", "10.0.0.1:99999", "abns@x", "/x"])
def test_what_is_no_server(text: str):
    """It is refused."""
    with pytest.raises(ValueError, match=r"`"):
        server_target(text)
