"""Where `notify` sends to."""

import pytest

from appliance.model.config.values.notify_addresses import syslog_address, webhook_url

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/x?y=1",
        "http://[2001:db8::1]:9093/api/v2/alerts",
        "https://in_house.example./x",
        f"https://{'a' * 63}/",
    ],
)
def test_urls_of_webhooks(url: str):
    """What is right is taken as it is."""
    assert webhook_url(url) == url


@pytest.mark.parametrize(
    "secret",
    [
        7,
        "https://" + "x" * 3000,
        "https://secret\n.example",
        "https://s\xe9cret.example",
        "ftp://secret.example",
        "https://",
        "https://secret.example:99999/",
        "https://secret.example:0/",
        "https://[secret/",
        "https://secret..example.com/x",
        "https://.secret.example/",
        f"https://secret{'x' * 64}.example/",
        "https://user:secret@a.example/",
        "https://a.example/#secret",
    ],
)
def test_a_wrong_url_is_not_repeated(secret: object):
    """The message says what would be right, and nothing of a URL that may be a secret."""
    with pytest.raises(ValueError, match="must be a") as refused:
        webhook_url(secret)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "address", ["/dev/log", "udp://10.0.0.9:514", "tcp://[2001:db8::1]:601", "tls://log:6514"]
)
def test_addresses_of_syslog(address: str):
    """A socket, or a server with its port."""
    assert syslog_address(address) == address


@pytest.mark.parametrize(
    "address",
    [
        *(
            7,
            "",
            "udp://10.0.0.9",
            "tls://a",
            "ssl://a:1",
            "udp://a:1/x",
            "udp://a:99999",
            "udp://u@a:1",
            "/a\n",
        ),
        *("udp://a..b:514", f"tcp://{'a' * 64}:601"),
    ],
)
def test_wrong_addresses_of_syslog(address: object):
    """Anything else is refused with what would be right."""
    with pytest.raises(ValueError, match="must be udp"):
        syslog_address(address)
