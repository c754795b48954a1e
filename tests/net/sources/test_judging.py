"""The operator's file: read without ever waiting, judged in a time that grows with its length alone."""

import os
import time
from pathlib import Path

import pytest
from support.fuzzing.damage import SPOILS

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import decode, encode
from appliance.net.sources import judging
from appliance.wire.lines.control import bad, decode_answer, encode_answer

pytestmark = pytest.mark.sockets

_ROUTER = """vrrp_instance v {
 interface lo
 virtual_router_id 5
 priority 10
 virtual_ipaddress {
  10.9.9.9/24
 }
}
"""
_GENEROUS = 30.0  # seconds for what takes two on an idle machine, and took minutes when it was quadratic


@pytest.mark.parametrize("damage", ["directory", "fifo", "socket", "device"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, damage: str):
    """A FIFO that nobody writes, a device that never ends: an error that names the file and what it is."""
    path = tmp_path / "c.yaml"
    path.touch()
    SPOILS[damage](path)
    (error,) = judging.judge(Paths(config=path), number=1).errors
    assert error.message.startswith(f"{path}: cannot be read: is a ")
    assert error.message.endswith(", not a file")


def test_a_link_to_a_file_is_a_file(tmp_path: Path):
    """Kubernetes mounts a ConfigMap as links."""
    (tmp_path / "..data").write_text("{}")
    (tmp_path / "c.yaml").symlink_to("..data")
    assert judging.judge(Paths(config=tmp_path / "c.yaml"), number=1).snapshot is not None


def test_a_missing_file_is_an_error_with_its_name(tmp_path: Path):
    """Nothing there, or a link to nothing, is told as the system tells it."""
    (tmp_path / "dangling").symlink_to("nowhere")
    for path in (tmp_path / "absent", tmp_path / "dangling"):
        (error,) = judging.judge(Paths(config=path), number=1).errors
        assert error.message == f"{path}: cannot be read: No such file or directory"


_NOT_UTF_8 = os.fsdecode(b"\xff")


def test_a_name_that_is_no_utf_8_is_told_with_its_escape(tmp_path: Path):
    """What is accepted of such a file can be written, and what is wrong in it can be answered."""
    main, other = (tmp_path / f"{_NOT_UTF_8}.{each}" for each in ("keepalived", "conf"))
    main.write_text(f"include {tmp_path}/*.conf\n")
    other.write_text(_ROUTER)
    paths = Paths(config=tmp_path / "absent", keepalived=main)
    accepted = judging.judge(paths, number=1).snapshot
    assert accepted is not None
    assert decode(encode(accepted)).source == rf"{tmp_path}/\udcff.keepalived"
    other.write_text(_ROUTER.replace("router_id 5", "router_id 500"))
    errors = judging.judge(paths, number=2).errors
    assert decode_answer(encode_answer(bad(*errors))).errors[0].source == rf"{tmp_path}/\udcff.conf"


def test_a_variable_that_is_no_utf_8_is_taken_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its bytes, which keepalived would take, have no place in files of ours."""
    monkeypatch.setenv("NOTIFIED", _NOT_UTF_8)
    (tmp_path / "k.conf").write_text(_ROUTER.replace("priority", 'notify "/bin/${_ENV NOTIFIED}"\n priority'))
    judged = judging.judge(Paths(config=tmp_path / "absent", keepalived=tmp_path / "k.conf"), number=1)
    assert judged.snapshot is not None
    assert "/bin/\ufffd" in encode(judged.snapshot).decode()


def test_a_file_above_the_limit_is_not_read(tmp_path: Path):
    """A hundred megabytes are refused by their length."""
    path = tmp_path / "c.yaml"
    path.write_text("{}")
    os.truncate(path, 100 << 20)
    begun = time.process_time()
    (error,) = judging.judge(Paths(config=path), number=1).errors
    assert error.message == f"{path}: cannot be read: is larger than {8 << 20} bytes"
    assert time.process_time() - begun < _GENEROUS


_NUMBERS = range(4000)
_MISTAKEN = {
    "wrong words beside what is doubtful": "pools:\n"
    + "".join(f"  p{n}: {{ balance: nope }}\n  q{n}: {{}}\n" for n in _NUMBERS),
    "servers without address": "pools:\n"
    + "".join(f"  p{n}: {{ servers: {{ a: {{}} }} }}\n  q{n}: {{}}\n" for n in _NUMBERS),
    "pools that nobody has": "api:\n  frontends:\n"
    + "".join(f"    f{n}: {{ bind: ['10.0.0.1:{n + 1}'], pool: r{n} }}\n" for n in _NUMBERS)
    + "pools:\n"
    + "".join(f"  p{n}: {{}}\n" for n in _NUMBERS),
    "binds of one port": "api:\n  frontends:\n"
    + "".join(f"    f{n}: {{ bind: ['10.0.{n // 250}.{n % 250}:80'], pool: x }}\n" for n in _NUMBERS),
}


@pytest.mark.parametrize("mistaken", _MISTAKEN)
def test_many_mistakes_cost_each_the_same_and_a_hundred_are_told(tmp_path: Path, mistaken: str):
    """Thousands of mistakes are judged in seconds; an operator reads the first hundred, and the number."""
    path = tmp_path / "c.yaml"
    path.write_text(_MISTAKEN[mistaken])
    begun = time.process_time()
    judged = judging.judge(Paths(config=path), number=1)
    assert time.process_time() - begun < _GENEROUS
    assert judged.snapshot is None
    assert len(judged.errors) == 101
    assert "more errors" in judged.errors[-1].message
    assert max(len(each.message) for each in judged.errors) < 500


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" * (8 << 20), "nested deeper"),
        (b"{" * (8 << 20), "key must be plain text"),
        (b"- " * (4 << 20), "nested deeper"),
        (b"a: [" + b"1," * 300_000 + b"]", "more than 200000 values"),
        (
            b"a: &a [x,x,x,x,x,x,x,x,x]\n"
            + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(98, 120)),
            "more than 200000 values",
        ),
    ],
)
def test_bombs_are_refused(tmp_path: Path, content: bytes, said: str):
    """Nesting without end, aliases that multiply, and very many values are one error with its place."""
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    begun = time.process_time()
    (error,) = judging.judge(Paths(config=path), number=1).errors
    assert time.process_time() - begun < _GENEROUS
    assert said in error.message
    assert error.line is not None


def test_files_and_sockets_may_differ_by_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is used before the file is judged as a whole: foreign files, sockets until the first reload."""
    config, foreign = tmp_path / "c.yaml", tmp_path / "keepalived.conf"
    foreign.write_text(_ROUTER)
    config.write_text(
        f"nodes: {{ lb-0: {{}}, lb-1: {{}} }}\nsource: {{ keepalived: {{ lb-1: {foreign} }} }}\n"
        "reload: { sockets: { lb-1: [/run/a.sock] } }\n"
    )
    paths = Paths(config=config)

    monkeypatch.setenv("APPLIANCE_NODE", "lb-1")
    used, awaited = judging.judge(paths, number=1).snapshot, judging.first_to_come(paths, number=1)
    assert used is not None
    assert awaited is not None
    assert [each.name for each in used.virtual_routers] == ["v"]
    assert used.reload.sockets == awaited.reload.sockets == ("/run/a.sock",)
    monkeypatch.setenv("APPLIANCE_NODE", "lb-0")
    other = judging.judge(paths, number=1).snapshot
    assert other is not None
    assert (other.virtual_routers, other.reload.sockets) == ((), ())
    assert judging.first_to_come(paths, number=1) is None
