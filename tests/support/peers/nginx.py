"""A real nginx in a directory of its own, as the server behind the proxy."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.network.ports import accepts, free_port
from support.processes.processes import running
from support.processes.waiting import wait_until
from support.run import tools
from support.values.certificates import Certificates

_CONFIG = """
daemon off;
master_process {master};
worker_processes 1;
pid {root}/nginx.pid;
error_log {root}/error.log warn;
{user}
events {{ worker_connections 16000; accept_mutex off; }}
worker_rlimit_nofile 20000;
http {{
  access_log off;
  sendfile on;
  tcp_nodelay on;
  keepalive_requests 1000000;
  keepalive_timeout 3600s;
  send_timeout 3600s;
  reset_timedout_connection off;
  client_max_body_size 0;
  client_body_temp_path {root}/body;
  proxy_temp_path {root}/proxy;
  fastcgi_temp_path {root}/fastcgi;
  uwsgi_temp_path {root}/uwsgi;
  scgi_temp_path {root}/scgi;
  types {{ }}
  default_type application/octet-stream;
  server {{
    {listen}
    root {root}/www;
    dav_methods PUT;
    location = /name {{ return 200 "{name}\\n"; }}
    location = /address {{ return 200 "$server_addr\n"; }}
    location = /readyz {{ return 200 "ok\\n"; }}
    {locations}
  }}
}}
"""
_UPGRADE = """
    location /upgrade {{
      proxy_pass http://127.0.0.1:{port};
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection "upgrade";
      proxy_read_timeout 1h;
    }}
"""


@contextlib.contextmanager
def nginx(
    name: str = "nginx",
    *,
    port: int | None = None,
    certificates: Certificates | None = None,
    upgrades_to: int | None = None,
) -> Iterator["Nginx"]:
    """Run nginx on both families; with `certificates` it speaks TLS and HTTP/2.

    `/name` answers the name, `/address` the address that was connected to, `/readyz` 200; PUT stores a file,
    files of `www` are served, and `/upgrade` passes an upgraded connection on to the plain server at the port
    `upgrades_to`.
    """
    port = port or free_port()
    with tempfile.TemporaryDirectory(prefix="lb-nginx-") as directory:
        root = Path(directory)
        (root / "www").mkdir()
        (root / "nginx.conf").write_text(_config(root, name, port, certificates, upgrades_to))
        binary = tools.path("nginx")
        assert binary, "nginx is missing; the test lacks its `needs` marker"
        command = [binary, "-p", directory, "-c", f"{directory}/nginx.conf", "-e", f"{directory}/error.log"]
        with running(command, log=root / "output.log") as process:
            wait_until(lambda: accepts(port) or process.poll() is not None, what=f"nginx accepts on {port}")
            assert process.poll() is None, (root / "output.log").read_text() + (
                root / "error.log"
            ).read_text()
            yield Nginx(port, root / "www", process.pid)


class Nginx:
    """A running nginx: its port, and the directory that it serves."""

    def __init__(self, port: int, www: Path, pid: int) -> None:
        self.port = port
        self.www = www
        self.pid = pid


def _config(
    root: Path, name: str, port: int, certificates: Certificates | None, upgrades_to: int | None
) -> str:
    options = "backlog=4096"
    tls = ""
    if certificates is not None:
        options += " ssl http2"
        tls = f"ssl_certificate {certificates.chain}; ssl_certificate_key {certificates.key};"
    listen = f"listen {port} {options}; listen [::]:{port} {options} ipv6only=on; {tls}"
    return _CONFIG.format(
        root=root,
        name=name,
        listen=listen,
        # As root nginx would give its worker to a user that cannot read the directory.
        user="user root;" if tools.is_root() else "",
        master="off",
        locations=_UPGRADE.format(port=upgrades_to) if upgrades_to else "",
    )
