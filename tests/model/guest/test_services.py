"""The syslog server and the authorities of a machine, as a form brings them."""

import base64

import pytest

from appliance.model.guest.machine_settings import SyslogTarget, authorities, syslog_target

pytestmark = pytest.mark.pure


def pem(content: bytes) -> str:
    """Return what looks like a certificate."""
    text = base64.encodebytes(content).decode()
    return f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n"


ONE, TWO = pem(b"0" + b"a" * 200), pem(b"0" + b"b" * 20)


def test_certificates_survive_a_form():
    """As they are, in base64, or in one line; the same one counts once."""
    (one, two) = authorities(f"# ours\n{ONE}{TWO}{ONE}")
    assert base64.b64decode("".join(one.splitlines()[1:-1])) == b"0" + b"a" * 200
    assert max(map(len, one.splitlines())) == 64
    assert authorities(base64.b64encode((ONE + TWO).encode()).decode()) == (one, two)
    assert authorities((ONE + TWO).replace("\n", " ")) == (one, two)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing!", "neither PEM nor base64"),
        ("bm90aGluZw==", "has no certificate"),
        (ONE + TWO[:60], "cut off"),
        (pem(b"x"), "something else"),
        (ONE.replace("M", "!"), "neither PEM nor base64"),
    ],
)
def test_what_is_no_certificate_is_named(text: str, message: str):
    """It is refused as a whole: half a bundle would fail later."""
    with pytest.raises(ValueError, match=message):
        authorities(text)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("10.0.0.9", ("udp", "10.0.0.9", 514)),
        ("log.example.com:1514", ("udp", "log.example.com", 1514)),
        ("tcp://[2001:db8::9]:601/", ("tcp", "2001:db8::9", 601)),
    ],
)
def test_syslog_server(text: str, target: tuple[str, str, int]):
    """A URL, or a host alone."""
    protocol, host, port = target
    assert syslog_target(text) == SyslogTarget(protocol=protocol, host=host, port=port)


@pytest.mark.parametrize(
    "text", ["tls://a:1", "http://a", "udp://", "udp://a:99999", "udp://a:0", "udp://a/b", "udp://[a"]
)
def test_no_syslog_server(text: str):
    """Each message says what would be right."""
    with pytest.raises(ValueError, match="udp"):
        syslog_target(text)
