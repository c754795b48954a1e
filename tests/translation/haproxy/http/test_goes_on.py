"""The real HAProxy takes the file with which it is to go on, and it has no port of ours."""

import subprocess
from pathlib import Path

import pytest
from support.run.tools import path
from support.translation.haproxy_files import TIMES, read

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy")]

HTTP = TIMES.replace("\n", "\n  mode http\n", 1)
API = """\
listen api
  mode tcp
  bind 127.0.0.1:16443
  maxconn 100
  tcp-request connection reject if { src 192.0.2.9 }
  stick-table type ip size 1k
  server m0 192.0.2.11:6443 check
"""
FILES = {
    "rules and answers": f"""{HTTP}cache c
  total-max-size 1
userlist people
  user a insecure-password b
frontend web
  bind 127.0.0.1:10080
  acl is_app path_beg /app
  http-request auth if {{ path /x }} !{{ http_auth(people) }}
  http-request cache-use c if {{ path /y }}
  redirect scheme https if {{ path /z }}
  use_backend app if is_app
  use_backend %[req.hdr(host),lower] if {{ path /h }}
  default_backend web
backend web
  cookie SRV insert
  server a 192.0.2.21:80 cookie a
backend app
  server a 192.0.2.21:80
backend moved
  redirect prefix https://a.example
{API}""",
    "what both use": f"""{HTTP}# the site
frontend web
  bind 127.0.0.1:10080
  http-request deny if {{ nbsrv(api) lt 1 }}
  http-request deny if {{ src_conn_rate(api) gt 9 }}
  default_backend web
backend web
  server a 192.0.2.21:80 track api/m0
# the API
{API}""",
    "TCP that is read as HTTP": f"""{HTTP}frontend plain
  mode tcp
  bind 127.0.0.1:10080
  default_backend web
frontend other
  bind 127.0.0.1:10081
  default_backend web
backend web
  server a 192.0.2.21:80
{API}""",
    "defaults by name, blocks, a page of ours": f"""{HTTP.replace("defaults", "defaults web")}
.if !defined(NOWHERE)
frontend web from web
  bind 127.0.0.1:10080
  default_backend web
.endif
backend web from web
  server a 192.0.2.21:80
defaults tcp from web
  mode tcp
.if !defined(NOWHERE)
{API}.endif
listen page from web
  bind 127.0.0.1:19000
  stats enable
  stats uri /
""",
    "the package's sample": f"""{HTTP}  option forwardfor except 127.0.0.0/8
frontend main
  bind 127.0.0.1:10080
  acl url_static path_beg -i /static /images
  use_backend static if url_static
  default_backend app
backend static
  server static 127.0.0.1:4331 check
backend app
  server app1 127.0.0.1:5001 check
{API}""",
}


@pytest.mark.promise("docs/foreign-files.md", "HAProxy goes on with the sections of HTTP")
@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_haproxy_takes_what_is_left_to_it(text: str, tmp_path: Path):
    """As it takes the whole file; it listens for HTTP alone."""
    found = read(text, http="skip")
    assert found.refused == []
    remainder = found.found.remainder

    assert (judged(text, tmp_path), judged(remainder, tmp_path)) == ((0, ""), (0, ""))
    assert "127.0.0.1:10080" in remainder
    assert not [port for port in ("127.0.0.1:16443", "127.0.0.1:19000") if port in remainder]


def judged(text: str, folder: Path) -> tuple[int, str]:
    """Return the exit code of HAProxy's own check of a text, with what it says of errors."""
    file = folder / "haproxy.cfg"
    file.write_text(text)
    command = [str(path("haproxy")), "-c", "-f", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, "\n".join(each for each in done.stderr.splitlines() if "[ALERT]" in each)
