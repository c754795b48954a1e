"""Pipes are lent, bounded, and never lent again with somebody's bytes in them."""

import os
import resource
from collections.abc import Iterator

import pytest

from appliance.worker.relay.pipes import Pipes

pytestmark = pytest.mark.sockets


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    """Give two pipes."""
    lent = Pipes(2, spare=1)
    yield lent
    lent.close()


def test_out_of_pipes_is_none(pipes: Pipes):
    """Beyond the bound there is none; one that comes back is lent again."""
    first, second = pipes.take(), pipes.take()
    assert first is not None
    assert second is not None
    assert pipes.take() is None
    pipes.give(first)
    assert pipes.take() is first
    for pipe in (first, second):
        pipes.give(pipe)
    assert pipes.lent == 0


def test_pipe_with_bytes_is_closed(pipes: Pipes):
    """What a session has left in a pipe no other session can ever see."""
    pipe = pipes.take()
    assert pipe is not None
    pipe.held = os.write(pipe.writer, b"secret")
    pipes.give(pipe)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pipe.reader)
    other = pipes.take()
    assert other is not None
    with pytest.raises(BlockingIOError):
        os.read(other.reader, 10)
    pipes.give(other)


def test_spares_are_bounded(pipes: Pipes):
    """No more than the spare ones are kept open."""
    lent = [pipe for pipe in (pipes.take(), pipes.take()) if pipe is not None]
    for pipe in lent:
        pipes.give(pipe)
    os.fstat(lent[0].reader)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(lent[1].reader)


def test_out_of_descriptors_is_none(pipes: Pipes):
    """A process without descriptors goes on without pipes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        assert pipes.take() is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert pipes.lent == 0
