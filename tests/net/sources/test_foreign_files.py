"""haproxy.cfg, keepalived.conf and frr-peers.json beside our YAML, read and judged together."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.openshift.peers_file import peers_file

from appliance.model.paths import Paths
from appliance.net.sources.foreign_files import ForeignFiles, translated
from appliance.net.sources.judging import first_to_come, judge
from appliance.net.sources.read_files import ReadFiles
from appliance.net.sources.watched_files import WatchedFiles

pytestmark = pytest.mark.sockets

HAPROXY = """\
defaults
  mode tcp
  timeout connect 1s
  timeout client 1m
  timeout server 1m
frontend main
  bind :6443
  default_backend masters
backend masters
  server m0 "${MASTER}:6443" check
"""
KEEPALIVED = """\
vrrp_script alive {
  script "/usr/bin/killall -0 haproxy"
}
vrrp_instance api {
  interface eth0
  virtual_router_id 51
  virtual_ipaddress { 192.0.2.200/24 }
  track_script { alive }
}
"""

Write = Callable[..., Paths]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes the files of a machine, and says where they are."""
    monkeypatch.setenv("MASTER", "192.0.2.1")

    def files(*, yaml: str | None = None, haproxy: str | None = None, keepalived: str | None = None) -> Paths:
        given = {"c.yaml": yaml, "haproxy.cfg": haproxy, "keepalived.conf": keepalived}
        for name, text in given.items():
            if text is not None:
                (tmp_path / name).write_text(text)
        return Paths(
            config=tmp_path / "c.yaml",
            haproxy=() if haproxy is None else (tmp_path / "haproxy.cfg",),
            keepalived=None if keepalived is None else tmp_path / "keepalived.conf",
        )

    return files


def test_both_files_alone_are_a_configuration(write: Write):
    """No YAML is needed; variables are of our environment; haproxy's process is our program."""
    snapshot = judge(write(haproxy=HAPROXY, keepalived=KEEPALIVED), number=1).snapshot
    assert snapshot is not None
    assert [Path(each).name for each in snapshot.source.split(" with ")] == ["haproxy.cfg", "keepalived.conf"]
    (server,) = snapshot.pools[0].servers
    assert server.host == "192.0.2.1"
    (router,) = snapshot.virtual_routers
    assert [(each.kind.value, each.target) for each in router.track] == [("program", "proxy-api")]


def test_the_yaml_says_what_the_files_cannot(write: Write):
    """Log and drain time come from it, and so may the names of the files."""
    paths = write(haproxy=HAPROXY)
    said = "log: { level: debug }\npools: { masters: { panic: 50% } }\n"
    snapshot = judge(write(yaml=f"{said}source: {{ haproxy: {paths.haproxy[0]} }}\n"), number=1).snapshot
    assert snapshot is not None
    assert (snapshot.log.level, snapshot.pools[0].panic) == ("debug", 0.5)


@pytest.mark.parametrize("yaml", [None, "", "# nothing but this\n", "{}"])
def test_an_empty_yaml_says_nothing(write: Write, *, yaml: str | None):
    """As long as there are other files."""
    assert judge(write(yaml=yaml, haproxy=HAPROXY), number=1).snapshot is not None
    alone = judge(write(yaml=yaml), number=1)
    assert (alone.snapshot is None) is (yaml != "{}")


def test_yaml_that_cannot_be_read_is_an_error(write: Write):
    """Beside other files too."""
    (error,) = judge(write(yaml="a: [", haproxy=HAPROXY), number=1).errors
    assert (error.line, error.source) == (1, None)


def test_what_is_set_outside_wins_over_the_source(write: Write):
    """A YAML of another machine may name another file."""
    paths = write(yaml="source: { haproxy: /absent/haproxy.cfg }\n", haproxy=HAPROXY)
    assert judge(paths, number=1).snapshot is not None


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "{ haproxy: /absent/haproxy.cfg }",
            "/absent/haproxy.cfg: cannot be read: No such file or directory",
        ),
        ("{ keepalived: /dev/null }", "/dev/null: cannot be read: is a device, not a file"),
        ("{ haproxy: relative.cfg }", "must be the absolute path of a file, from `/` on, not `relative.cfg`"),
        ("5", "must be a mapping, not `5`"),
    ],
)
def test_a_source_that_cannot_be_read_is_the_error(write: Write, source: str, said: str):
    """What the YAML says besides makes little sense without it, and is not judged."""
    text = f"source: {source}\napi: {{ frontends: {{ a: {{ bind: ['[::]:1'] }} }} }}\n"
    judged = judge(write(yaml=text), number=1)
    assert judged.snapshot is None
    assert judged.errors[0].message == said


def test_an_empty_file_is_an_error(write: Write):
    """Somebody may have truncated it to write it anew."""
    (error,) = judge(write(haproxy="\n \n"), number=1).errors
    assert error.message.endswith("haproxy.cfg: the file is empty")


def test_errors_are_in_their_files(write: Write):
    """Our own YAML is not named, for who asks knows it; the others are."""
    paths = write(
        yaml="log: { level: loud }\n",
        haproxy=HAPROXY + "  nonsense\n",
        keepalived=KEEPALIVED.replace("51", "500"),
    )
    errors = judge(paths, number=1).errors
    found = {(each.source and Path(each.source).name, each.line) for each in errors}
    assert {(None, 1), ("haproxy.cfg", 11), ("keepalived.conf", 6)} <= found


@pytest.mark.parametrize(
    ("yaml", "waits"),
    [
        ("source: { haproxy: /absent }\nreload: { sockets: [/run/a.sock] }\n", True),
        ("source: { haproxy: 5 }\n", False),
        ("reload: { sockets: [/run/a.sock] }\n", False),
        ("a: [", False),
        (None, False),
    ],
)
def test_who_is_waited_for(write: Write, *, yaml: str | None, waits: bool):
    """A YAML alone is the operator's, who is there; foreign files are written by programs."""
    assert (first_to_come(write(yaml=yaml), number=1) is not None) is waits


def test_sockets_or_files_from_outside_have_it_wait(tmp_path: Path):
    """With a socket from outside somebody will ask, whatever is written for."""
    for paths in (
        Paths(config=tmp_path / "c.yaml", reload_sockets=(tmp_path / "a.sock",)),
        Paths(config=tmp_path / "c.yaml", haproxy=(tmp_path / "haproxy.cfg",)),
        Paths(config=tmp_path / "c.yaml", keepalived=tmp_path / "keepalived.conf"),
    ):
        found = first_to_come(paths, number=4)
        assert found is not None
        assert (found.awaited, found.number) == (True, 4)


LISTEN = "listen {0}\n  bind :{1}\n  server s 192.0.2.1:1 check\n"


def parts(folder: Path) -> Path:
    """Write a directory as HAProxy takes them, with files that it leaves alone; return it."""
    folder.mkdir()
    (folder / "sub.cfg").mkdir()
    for name, text in (
        ("20-b.cfg", LISTEN.format("b", 2)),
        ("10-a.cfg", HAPROXY),
        ("B.cfg", LISTEN.format("c", 3)),
        ("x.conf", "nonsense\n"),
        (".hidden.cfg", "nonsense\n"),
        ("sub.cfg/y.cfg", "nonsense\n"),
    ):
        (folder / name).write_text(text)
    return folder


def test_several_files_and_directories(tmp_path: Path, write: Write):
    """They are read as HAProxy does: in the order in which they are given, of a directory by name."""
    more = tmp_path / "more.cfg"
    more.write_text(LISTEN.format("d", 4))
    paths = replace(write(), haproxy=(parts(tmp_path / "conf.d"), more))
    snapshot = judge(paths, number=1).snapshot
    assert snapshot is not None
    assert [each.name for each in snapshot.groups[0].frontends] == ["main", "b", "c", "d"]
    (error,) = judge(replace(paths, haproxy=(more, tmp_path / "absent.cfg")), number=1).errors
    assert error.message.endswith("absent.cfg: cannot be read: No such file or directory")


def test_a_directory_without_a_file_of_haproxys(tmp_path: Path, write: Write):
    """It says nothing, and somebody means it to."""
    empty = tmp_path / "conf.d"
    empty.mkdir()
    (error,) = judge(replace(write(), haproxy=(empty,)), number=1).errors
    assert error.message.endswith("conf.d: cannot be read: no file of this directory ends in `.cfg`")


def test_files_that_say_nothing_together(tmp_path: Path, write: Write):
    """One of several may be empty, as with HAProxy, but not all."""
    for name in ("a.cfg", "b.cfg"):
        (tmp_path / name).write_text("\n")
    paths = replace(write(), haproxy=(tmp_path / "a.cfg", tmp_path / "b.cfg"))
    assert [each.message.rpartition("/")[2] for each in judge(paths, number=1).errors] == [
        "a.cfg: the file is empty",
        "b.cfg: the file is empty",
    ]
    (tmp_path / "b.cfg").write_text(HAPROXY)
    assert judge(paths, number=1).snapshot is not None


def test_a_directory_that_may_not_be_looked_at(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch):
    """It is an error of the file, whatever the system says."""

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refuse)
    (error,) = judge(replace(write(), haproxy=(tmp_path / "conf.d",)), number=1).errors
    assert error.message.endswith("conf.d: cannot be read: Permission denied")


def test_files_of_a_directory_are_watched(tmp_path: Path, write: Write):
    """Also one that comes, and lists of networks that a file names."""
    folder, networks = parts(tmp_path / "conf.d"), tmp_path / "networks"
    networks.write_text("10.0.0.0/8\n")
    rule = f"  tcp-request connection reject unless {{ src -f {networks} }}\n"
    (folder / "B.cfg").write_text(LISTEN.format("c", 3) + rule)
    paths = replace(write(), haproxy=(folder,))
    watched = WatchedFiles(paths)
    judge(paths, watched.read(), number=1)
    assert [watched.unasked(), watched.unasked()] == [None, None]
    for change in (lambda: (folder / "C.cfg").write_text("\n"), lambda: networks.write_text("10.0.0.0/9\n")):
        change()
        assert watched.unasked() is None, "it may still be written"
        found = watched.unasked()
        assert found is not None
        snapshot = judge(paths, found, number=1).snapshot
        assert snapshot is not None
    assert snapshot.groups[0].frontends[-1].allow == ("10.0.0.0/9",)


def test_included_files_are_watched(tmp_path: Path, write: Write):
    """Which ones there are is known from the last judgement."""
    paths = write(keepalived=f"include {tmp_path}/more*.conf\n")
    more = tmp_path / "more.conf"
    more.write_text(KEEPALIVED)
    watched = WatchedFiles(paths)
    judge(paths, watched.read(), number=1)
    assert [watched.unasked(), watched.unasked()] == [None, None]
    more.write_text(KEEPALIVED + "# more\n")
    assert watched.unasked() is None, "it may still be written"
    found = watched.unasked()
    assert found is not None
    assert found.content(more) == more.read_bytes()
    judge(paths, found, number=1)
    assert [watched.unasked(), watched.unasked()] == [None, None]


def test_nothing_to_translate_is_nothing():
    """Without foreign files there is nothing of them."""
    found = translated(ForeignFiles(), ReadFiles())
    assert (found.translations, found.problems) == ((), ())


HTTP = "frontend web\n  mode http\n  bind :80\n  redirect scheme https\n"


def test_sections_of_http_are_left_to_haproxy_where_the_yaml_says_so(write: Write):
    """The rest is obeyed, and the snapshot tells who listens nowhere; nobody is left out unasked."""
    paths = write(haproxy=HAPROXY + HTTP)
    (error,) = judge(paths, number=1).errors
    assert "the frontend `web` runs in `mode http`" in error.message

    write(yaml="source: { http: skip }\n")
    judged = judge(paths, number=1)
    assert judged.snapshot is not None
    assert [each.name for each in judged.snapshot.groups[0].frontends] == ["main"]
    assert judged.snapshot.left_out == (
        "the frontend `web` is left to HAProxy (`http: skip`): this appliance does not listen on :80",
    )


def test_a_file_that_becomes_http_as_a_whole_is_refused(write: Write):
    """Nothing would be served, and what is accepted goes on."""
    paths = write(yaml="source: { http: skip }\n", haproxy=HAPROXY.replace("mode tcp", "mode http"))
    (error,) = judge(paths, number=1).errors
    assert (error.line, "nothing is left to serve" in error.message) == (6, True)


def test_another_word_for_it_is_an_error(write: Write):
    """And leaves nothing out."""
    judged = judge(write(yaml="source: { http: leave }\n", haproxy=HAPROXY), number=1)
    (error,) = judged.errors
    assert (error.path, error.message) == ("source.http", "must be one of refuse, skip, not `leave`")


def peers_beside(tmp_path: Path, content: bytes) -> Paths:
    """Return the paths of a node whose YAML names a file of BGP peers."""
    peers, config = tmp_path / "frr-peers.json", tmp_path / "c.yaml"
    peers.write_bytes(content)
    config.write_text(f"source: {{ bgp_peers: {peers} }}\nbgp: {{ engine: table }}\n")
    return Paths(config=config)


def test_the_peers_of_this_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """They are those of APPLIANCE_NODE where it is set, and the file is named as a source."""
    monkeypatch.setenv("APPLIANCE_NODE", "master-1")
    snapshot = judge(peers_beside(tmp_path, peers_file()), number=1).snapshot
    assert snapshot is not None
    assert snapshot.bgp is not None
    assert [each.address for each in snapshot.bgp.neighbors] == ["192.0.2.65"]
    assert snapshot.source.endswith("c.yaml with " + str(tmp_path / "frr-peers.json"))


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (peers_file(localASN=0), 2, "`localASN`: 0 is reserved: "),
        (b"[1]", 1, "the file must hold a mapping"),
        (b'{\n"localASN": 1,\n"localASN": 2}', 3, "`localASN` is given twice"),
        (b'{"localASN": "\xff"}', 1, "not UTF-8: the byte 0xff"),
        (b"\n", None, "frr-peers.json: the file is empty"),
    ],
)
def test_a_file_of_peers_that_is_wrong(tmp_path: Path, content: bytes, line: int | None, said: str):
    """One error names the file, and the line where there is one; nothing of ours is missing besides."""
    judged = judge(peers_beside(tmp_path, content), number=1)
    assert judged.snapshot is None
    (error,) = judged.errors
    assert error.line == line
    assert said in error.message
    assert "frr-peers.json" in (error.source or error.message)


def test_a_file_of_peers_is_followed(tmp_path: Path):
    """A change of it is seen without a reload, and a file that is gone is an error."""
    paths = peers_beside(tmp_path, peers_file())
    watched = WatchedFiles(paths)
    assert judge(paths, watched.read(), number=1).snapshot is not None
    assert watched.are_as_judged()
    (tmp_path / "frr-peers.json").write_bytes(peers_file(ingressVIPs=["198.51.100.9"]))
    assert watched.unasked() is None
    changed = watched.unasked()
    assert changed is not None
    snapshot = judge(paths, changed, number=2).snapshot
    assert snapshot is not None
    assert snapshot.shared_ips[1].addresses == ("198.51.100.9/32",)
    (tmp_path / "frr-peers.json").unlink()
    (error,) = judge(paths, watched.read(), number=3).errors
    assert error.message.endswith("frr-peers.json: cannot be read: No such file or directory")
