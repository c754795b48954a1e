"""What `mode tcp` would lose in a section, directive by directive."""

import pytest
from support.translation.haproxy_files import TIMES, read

pytestmark = pytest.mark.pure

HTTP = TIMES.replace("\n", "\n  mode http\n", 1)


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("bind :443 ssl crt /a.pem", "TLS termination"),
        ("bind :443 crt /a.pem ssl", "TLS termination"),
        ("redirect scheme https", "redirects"),
        ("http-request redirect location /", "redirects"),
        ("acl a path_beg /a", "rules by path"),
        ("acl a path -i /a", "rules by path"),
        ("http-request set-log-level silent if { path /a }", "rules by path"),
        ("use_backend b if !{ url_beg /a }", "rules by path"),
        ("use_backend %[path,map(/a)]", "rules by path"),
        ("acl a hdr(host) -i a.example", "rules by host, header or method"),
        ("acl a hdr_dom(host) a.example", "rules by host, header or method"),
        ("acl a req.hdr(host),lower a", "rules by host, header or method"),
        ("acl a method POST", "rules by host, header or method"),
        ("cookie A insert", "cookies"),
        ("dynamic-cookie-key a", "cookies"),
        ("option forwardfor except 127.0.0.0/8", "header changes"),
        ("http-response set-header A b", "header changes"),
        ("http-request replace-path /a /b", "rewritten paths"),
        ("http-request auth unless { http_auth(u) }", "passwords"),
        ("http-request deny", "refused requests"),
        ("http-request return status 200", "its own answers"),
        ("errorfile 503 /a", "error pages"),
        ("server t 10.0.0.1:443 ssl verify none", "TLS to servers"),
        ("compression algo gzip", "compression"),
        ("http-request cache-use c", "a cache"),
        ("balance uri", "balancing by request"),
        ("balance hdr(host)", "balancing by request"),
    ],
)
def test_what_a_line_says_would_be_lost(line: str, lost: str):
    """It is named with its line."""
    [refused, *_] = read(f"{HTTP}listen l\n  bind :80\n  {line}\n  server s 10.0.0.1:1\n").refused

    assert f"`mode tcp` would lose {lost} (line 8);" in refused


@pytest.mark.parametrize(
    "line",
    [
        "option httplog",
        "http-request set-log-level silent",
        "acl path_of_a src 10.0.0.1",
        "balance roundrobin",
        "no option forwardfor",
        "bind :443 name ssl-less",
        "description path cookie redirect",
    ],
)
def test_what_tcp_does_as_well_is_not_named(line: str):
    """A name of somebody's, a log, a word that is about nothing of a request."""
    [refused, *_] = read(f"{HTTP}listen l\n  bind :80\n  {line}\n  server s 10.0.0.1:1\n").refused

    assert "lose" not in refused


def test_what_defaults_say_counts_too():
    """Also those that are named by others: each section has all of it."""
    first = HTTP.replace("defaults", "defaults a") + "  option forwardfor\n"
    text = f"{first}defaults b from a\n  compression algo gzip\n"
    [refused] = read(f"{text}listen l from b\n  bind :80\n  server s 10.0.0.1:1\n").refused

    assert "lose header changes (line 6) and compression (line 8);" in refused
