"""Keys from files: what is read, and what is said of a file that has none."""

import os
from pathlib import Path

import pytest

from appliance.model.snapshot.virtual_router import HmacKey
from appliance.net.files.hmac_keys import secrets

pytestmark = pytest.mark.sockets

TEXT = "an ASCII key of at least 32 bytes".replace(" ", "-")


def _keys(path: Path) -> tuple[HmacKey, ...]:
    return (HmacKey(id=1, secret="0f" * 32), HmacKey(id=2, secret="", file=str(path)))


@pytest.mark.parametrize(("text", "key"), [(f"{TEXT}\n", TEXT.encode()), ("hex:" + "0a" * 40, b"\n" * 40)])
def test_a_key_is_read_as_it_is_written(tmp_path: Path, text: str, key: bytes):
    """ASCII or `hex:` digits, with the line's end that editors leave."""
    path = tmp_path / "key"
    path.write_text(text)
    assert secrets(_keys(path)) == {1: b"\x0f" * 32, 2: key}


def test_no_keys_without_signatures():
    """Where nothing is signed there is nothing to read."""
    assert secrets(()) == {}


@pytest.mark.parametrize("text", ["short", "x" * 2000, "hex:zz", ""])
def test_a_file_without_a_key_is_named(tmp_path: Path, text: str):
    """The message has the file's name, and nothing of what is in it."""
    path = tmp_path / "key"
    path.write_text(text)
    with pytest.raises(OSError, match="has no key") as caught:
        secrets(_keys(path))
    assert str(path) in str(caught.value)
    assert not text or text not in str(caught.value)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path):
    """A FIFO, a directory and nothing at all are told at once."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, tmp_path, tmp_path / "missing"):
        with pytest.raises(OSError, match=str(path)):
            secrets(_keys(path))
