"""Listening sockets that move between the programs of two groups, lent while both are configured for them.

A bind that moves from one group to another in one reload is never closed: the new program borrows the open
socket, or binds next to it. The old program's workers accept there until it learns that the new one's do.
"""

import os
import socket
from collections.abc import Iterator
from typing import Final

from appliance.model.paths import Paths
from appliance.model.program_names import PROXIES
from appliance.net.control.control_client import ControlClient, ControlUnavailable
from appliance.wire.lines.control import Question

_ANSWER_TIMEOUT: Final = 2.0  # seconds for another master to answer, which it does at once


class OtherGroups:
    """The masters of the other groups, reached over their control sockets.

    A descriptor sent over a unix socket (SCM_RIGHTS, unix(7)) is the same open socket in both programs:
    either can accept a client in its accept queue, and the client stays when one of the two closes its
    descriptor.
    """

    def __init__(self, paths: Paths, program: str) -> None:
        self._paths = paths
        self._others = tuple(each for each in PROXIES if each != program)

    def lend(self, port: int) -> Iterator[socket.socket]:
        """Yield copies of their listening sockets at a port, which the caller owns."""
        for program in self._others:
            for descriptor in self._ask(program, Question(command="lend", values={"port": port})):
                yield socket.socket(fileno=descriptor)

    def taken(self, snapshot: int) -> None:
        """Notify them that we accept on the binds that a snapshot gives us."""
        for program in self._others:
            for descriptor in self._ask(program, Question(command="taken", values={"snapshot": snapshot})):
                os.close(descriptor)

    def _ask(self, program: str, question: Question) -> tuple[int, ...]:
        """Return the descriptors of an answer; a master that does not run has none."""
        try:
            with ControlClient(self._paths.control(program), timeout=_ANSWER_TIMEOUT) as client:
                return client.ask_for_descriptors(question, timeout=_ANSWER_TIMEOUT)[1]
        except ControlUnavailable:
            return ()
