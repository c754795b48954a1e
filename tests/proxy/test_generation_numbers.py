"""Numbers of generations over the lives of masters."""

from pathlib import Path

import pytest

from appliance.proxy.generation_numbers import AlreadyRunning, GenerationNumbers

pytestmark = pytest.mark.sockets


def test_never_used_twice(tmp_path: Path) -> None:
    """The next master goes on where the last one was, or above what it finds."""
    path = tmp_path / "proxy-api.lock"
    numbers = GenerationNumbers(path)
    assert [numbers.next(), numbers.next()] == [1, 2]
    numbers.close()
    numbers = GenerationNumbers(path)
    assert numbers.next() == 3
    numbers.seen(10)
    numbers.seen(4)
    assert numbers.next() == 11
    numbers.close()


def test_one_master_at_a_time(tmp_path: Path) -> None:
    """A second master is kept out while the first one lives."""
    numbers = GenerationNumbers(tmp_path / "lock")
    with pytest.raises(AlreadyRunning):
        GenerationNumbers(tmp_path / "lock")
    numbers.close()
    GenerationNumbers(tmp_path / "lock").close()


def test_garbage_in_the_file(tmp_path: Path) -> None:
    """A file that holds no number starts over."""
    (tmp_path / "lock").write_text("?")
    numbers = GenerationNumbers(tmp_path / "lock")
    assert numbers.next() == 1
    numbers.close()
