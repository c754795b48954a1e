"""Everything on disk that the demo needs: one directory with certificates, configuration and supervision."""

import contextlib
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.console.demo.demo_ports import DemoError, configuration, refuse_taken
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.process import python
from appliance.net.sources.judging import judge

_LONGEST_ROOT: Final = 40  # below it are sockets, whose paths must fit into 107 bytes
_DELAY: Final = 5.0
CERTIFICATE: Final = "backend.pem"
"""Name of the file with key and certificate of all backends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSite:
    """One demo's directory and ports."""

    root: Path
    paths: Paths
    offset: int

    @property
    def log(self) -> Path:
        """Log file of all programs."""
        return self.root / "log"

    @property
    def environment_file(self) -> Path:
        """File of shell variables for a second terminal."""
        return self.root / "env"

    @property
    def include(self) -> Path:
        """Supervisord's file of the backends."""
        return self.root / "backends.conf"

    @property
    def ending(self) -> Path:
        """File whose existence makes the backends end at once: no client is waiting."""
        return self.root / "ending"

    @property
    def certificate(self) -> Path:
        """Key and certificate of all backends."""
        return self.root / CERTIFICATE

    def port(self, number: int) -> int:
        """Return the port that replaces `number` of config/demo.yaml."""
        return number + self.offset


@contextlib.contextmanager
def site(*, offset: int) -> Iterator[DemoSite]:
    """Make the demo's directory, and remove it with everything in it; raises DemoError."""
    with tempfile.TemporaryDirectory(prefix="lb-demo-", dir=short_directory()) as name:
        root = Path(name)
        paths = Paths(config=root / "appliance.yaml", runtime=root / "run", state=root / "state")
        made = DemoSite(root=root, paths=paths, offset=offset)
        paths.config.write_text(configuration(offset=offset, ipv6=_has_ipv6()))
        snapshot = _judged(paths.config)
        refuse_taken(snapshot, offset)
        certify(made.root)
        made.include.write_text("".join(_programs(made)))
        made.environment_file.write_text(_environment(made))
        yield made


def short_directory() -> str:
    """Return where a demo's directory is made: sockets are below it."""
    standard = tempfile.gettempdir()
    return standard if len(standard) <= _LONGEST_ROOT - len("/lb-demo-12345678") else "/tmp"  # noqa: S108  # mkdtemp makes it ours


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _judged(path: Path) -> Snapshot:
    loaded = judge(Paths(config=path), number=1)
    if loaded.snapshot is None:
        raise DemoError("; ".join(error.message for error in loaded.errors))
    return loaded.snapshot


def certify(root: Path) -> None:
    """Write an authority and the certificate of all backends into a directory; raises DemoError."""
    try:
        import trustme  # noqa: PLC0415  # only the demo and the tests have it
    except ImportError as error:
        raise DemoError(
            "the demo makes certificates with trustme, which is missing: pip install 'lb-appliance[demo]'"
        ) from error
    authority = trustme.CA(organization_name="appliance demo")
    authority.cert_pem.write_to_path(str(root / "ca.pem"))
    leaf = authority.issue_cert("localhost", "127.0.0.1", "::1")
    leaf.private_key_and_cert_chain_pem.write_to_path(str(root / CERTIFICATE))


def _programs(made: DemoSite) -> Iterator[str]:
    for index in range(3):
        address = f"127.0.0.{21 + index}"
        yield _program(made, f"master-{index}", https=[f"{address}:{made.port(16443)}"], http=[])
    for index in range(2):
        address = f"127.0.0.{11 + index}"
        clear = [f"{address}:{made.port(port)}" for port in (18080, 11936)]
        yield _program(made, f"router-{index}", https=[f"{address}:{made.port(18443)}"], http=clear)


def _program(made: DemoSite, name: str, *, https: Iterable[str], http: Iterable[str]) -> str:
    """Return supervisord's section for a backend; the lowest priority stops last, after the proxies."""
    words = python.command("appliance.console.demo.demo_backend", name)
    words += [word for each in https for word in ("--https", each)]
    words += [word for each in http for word in ("--http", each)]
    words += ["--certificate", str(made.certificate), "--delay", f"{_DELAY:g}", "--ending", str(made.ending)]
    command = shlex.join(words).replace("%", "%%")
    return f"""\
[program:{name}]
command = {command}
priority = 5
autorestart = true
startsecs = 0
stopsignal = TERM
stopwaitsecs = {_DELAY + 5:.0f}
killasgroup = true
stdout_logfile = /dev/stdout
stdout_logfile_maxbytes = 0
stderr_logfile = NONE
stderr_events_enabled = true

"""


def _environment(made: DemoSite) -> str:
    """Return the variables for a second terminal: paths, and supervisorctl for this demo."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in made.paths.environment().items()]
    bin_directory = shlex.quote(str(Path(sys.executable).parent))
    control = shlex.quote(f"unix://{made.paths.supervisor_socket}")
    return "\n".join(
        [
            "# For a shell that shall talk to the demo.",
            *exports,
            f'export PATH={bin_directory}:"$PATH"',
            f'supervisorctl() {{ command supervisorctl -s {control} "$@"; }}',
            "",
        ]
    )
