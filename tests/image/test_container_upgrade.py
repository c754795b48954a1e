"""Containers that share the runtime directory: an upgrade, the way back, and upgrades that fail."""

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.load.load import Load
from support.load.streams import Streams
from support.machines import podman
from support.machines.container_host import ContainerHost
from support.machines.container_site import API, VIP, Site, say
from support.machines.podman import Container, build_changed
from support.peers.nginx import nginx
from support.peers.websocket import PACKAGE, WebsocketClient, websocket_client, websocket_server
from support.processes.waiting import wait_until
from support.values import body
from support.values.certificates import issue

import appliance

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", "ip", "nginx", "curl", PACKAGE, root=True),
    pytest.mark.slow("builds an image of another release"),
]

_PACKAGE = "/opt/appliance/lib/python3.11/site-packages/appliance"
_NEWER = "9.9.9"
_OTHER_GOES_ON = 3
_SERVERS = {"http2": 8443, "websocket": 8081}
_FRONTENDS = {"http2": 9446, "websocket": 9447, "streams": 9448}
_SIZE = 64 << 20
_BETWEEN = 256 << 10
"""Bytes of the body that are read between two upgrades; much more is under way then, held back."""

_SESSIONS, _STREAMS = 20, 2
_MIB = 1 << 20


def _compiled(module: str) -> str:
    """Return the command that compiles a module again, as the image never looks at its source."""
    return f"python3 -m compileall -f -q --invalidation-mode unchecked-hash {_PACKAGE}/{module}"


def _versioned(version: str) -> str:
    place = f"{_PACKAGE}/__init__.py"
    return f"sed -i 's/{appliance.__version__}/{version}/' {place} && {_compiled('__init__.py')}"


@pytest.fixture(scope="module")
def newer(image: str) -> Iterator[str]:
    """The image of a release that is newer."""
    del image
    name = build_changed("newer", _versioned(_NEWER))
    yield name
    podman.remove_image(name)


@pytest.fixture(scope="module")
def broken(image: str) -> Iterator[str]:
    """The image of a newer release whose workers end at once."""
    del image
    module = "programs/worker.py"
    # Workers are forks of a process that has imported the module, and call its `main`.
    dies = "\\ndef main() -> None:\\n    raise SystemExit('it does not like this machine')\\n"
    put = f'printf "{dies}" >>{_PACKAGE}/{module}'
    name = build_changed("broken", _versioned(_NEWER), f"{put} && {_compiled(module)}")
    yield name
    podman.remove_image(name)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Traffic:
    """What goes on over all upgrades: a body that curl reads over HTTP/2, a websocket, sessions, streams."""

    download: "subprocess.Popen[bytes]"
    websocket: WebsocketClient
    load: Load
    streams: Streams
    digest: "hashlib._Hash" = dataclasses.field(default_factory=hashlib.sha256)

    def goes_on(self, word: str) -> None:
        """Wait until all that was open has gone on, and assert that nothing has ended or was refused."""
        assert self.download.stdout is not None
        self.digest.update(self.download.stdout.read(_BETWEEN))
        assert self.websocket.echo(word) == word
        self.streams.wait_for_more(_MIB)
        before = self.load.report()
        wait_until(
            lambda: (
                (now := self.load.report()).lines > before.lines + _SESSIONS
                and now.completed > before.completed
            ),
            what="sessions go on, and new connections are served",
            timeout=30.0,
        )
        report, told = self.load.report(), self.streams.report()
        assert (report.failures, report.ended) == ({}, [])
        assert (told.open, told.ended) == (_STREAMS, {})

    def read_to_the_end(self) -> None:
        """Read the rest of the body, and assert that it came over one connection, with no byte wrong."""
        assert self.download.stdout is not None
        assert self.download.stderr is not None
        while chunk := self.download.stdout.read(_BETWEEN):
            self.digest.update(chunk)
        assert self.download.stderr.read() == b"2 1 200"
        assert self.digest.hexdigest() == body.checksum(_SIZE)


def _config(around: Site, streams: int) -> dict[str, object]:
    config = around.config(drain="60s")
    servers = {**_SERVERS, "streams": streams}
    api, pools = config["api"], config["pools"]
    assert isinstance(api, dict)
    assert isinstance(pools, dict)
    for name, port in _FRONTENDS.items():
        api["frontends"][name] = {"bind": [f"[::]:{port}"], "pool": name}
        pools[name] = {"check": False, "servers": {"own": {"address": f"127.0.0.1:{servers[name]}"}}}
    return config


@pytest.fixture
def streams(around: Site) -> Iterator[Streams]:
    """A server of streams on the machine of the containers, without a stream yet."""
    with around.one.inside():
        made = Streams()
    with made:
        yield made


@pytest.fixture
def host(around: Site, streams: Streams) -> Iterator[ContainerHost]:
    """A machine on which the image of this checkout serves."""
    config = around.write(_config(around, streams.port))
    with ContainerHost(around, config) as made:
        made.start()
        around.serves(VIP)
        yield made


@pytest.fixture
def traffic(around: Site, host: ContainerHost, streams: Streams, tmp_path: Path) -> Iterator[_Traffic]:
    """All of it, begun."""
    del host
    certificates = issue(tmp_path, "localhost")
    with contextlib.ExitStack() as stack:
        with around.one.inside():
            server = stack.enter_context(nginx(port=_SERVERS["http2"], certificates=certificates))
            stack.enter_context(websocket_server(_SERVERS["websocket"]))
            streams.connect(_FRONTENDS["streams"], _STREAMS)
        body.write(server.www / "large", _SIZE)
        with around.client.inside():
            load = stack.enter_context(Load(host=VIP, port=API, sessions=_SESSIONS, rate=50.0, pause=0.5))
            websocket = stack.enter_context(websocket_client(f"ws://{VIP}:{_FRONTENDS['websocket']}"))
            download = stack.enter_context(_reading(certificates.authority))
        load.wait_for_sessions()
        yield _Traffic(download=download, websocket=websocket, load=load, streams=streams)


@contextlib.contextmanager
def _reading(authority: Path) -> Iterator["subprocess.Popen[bytes]"]:
    port = _FRONTENDS["http2"]
    command = [
        *("curl", "-sSf", "--http2", "--cacert", str(authority), "--resolve", f"localhost:{port}:{VIP}"),
        *("--write-out", "%{stderr}%{http_version} %{num_connects} %{http_code}"),
        f"https://localhost:{port}/large",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
        try:
            yield client
        finally:
            client.kill()


def _version(container: Container) -> str:
    return str(json.loads(container.exec("appliance", "status", "--json", check=False).stdout)["version"])


@pytest.mark.promise("container", "an upgrade ends nothing")
def test_an_upgrade_and_the_way_back(around: Site, host: ContainerHost, traffic: _Traffic, newer: str):
    """Nothing has ended, nothing was refused, no byte is wrong; the former containers have ended with 0.

    `podman stop` is heard by supervisord alone then: the virtual IP goes, sessions may end, nothing is left.
    """
    traffic.goes_on("before")
    for image, version in ((newer, _NEWER), (podman.IMAGE, appliance.__version__)):
        container = host.upgrade(image)
        traffic.goes_on(f"after the upgrade to {version}")
        assert _version(container) == version
        assert '"sessions-lost"' not in container.log()
    traffic.read_to_the_end()
    traffic.load.stop_new()
    for source in ("127.0.0.1", around.client.address):
        host.running.exec("appliance", "sessions", "kill", "--source", source)
    _stops_in_order(around, host.running)


def test_upgrades_that_fail(around: Site, host: ContainerHost, traffic: _Traffic, newer: str, broken: str):
    """Each says why and ends with 3, so that its unit does not start it again; the former one goes on."""
    former = host.running

    def fails(container: Container, *words: str) -> None:
        assert container.exit_code(timeout=90.0) == _OTHER_GOES_ON
        for each in words:
            assert each in container.log()
        assert former.is_running()
        assert not host.said_ready(container)
        traffic.goes_on("after one that failed")

    fails(host.start(newer, shares_pids=False), "both containers need the same --pid=container:NAME")
    fails(host.start(broken), "it does not like this machine", "take-over-failed")
    good = (host.config / "appliance.yaml").read_text()
    around.write("api: 1\n")
    fails(host.start(newer), "/etc/appliance/appliance.yaml:1:")
    around.write(good)
    assert former.exec("appliance", "reload").returncode == 0
    sys.stderr.write(former.log())  # pytest shows it where the test has failed
    traffic.read_to_the_end()


def _stops_in_order(around: Site, container: Container) -> None:
    with concurrent.futures.ThreadPoolExecutor() as threads:
        with around.connect(around.one.address) as session:
            say(session, "before")
            stopping = threads.submit(container.stop, 50)
            wait_until(lambda: not around.one.holds(VIP), what="the virtual IP is gone")
            wait_until(lambda: not around.who(around.one.address), what="nobody new is let in")
            assert say(session, "draining").endswith("draining")
            assert not stopping.done()
        stopping.result()
    assert container.exit_code() == 0
    assert not around.one.holds(VIP)
