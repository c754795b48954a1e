"""Listening sockets that move between the programs of two groups: lent while both are configured for them.

A bind that goes from one group to another in one reload is never closed: the program that gets it borrows the
open socket, or binds beside it. The one that gives it up has its old workers accept there until it hears that
the other one's do.
"""

import os
import socket
from collections.abc import Iterator
from typing import Final

from appliance.model.paths import Paths
from appliance.model.program_names import PROXIES
from appliance.net.control.control_client import ControlClient, ControlUnavailable
from appliance.wire.lines.control import Question

_ANSWER_TIMEOUT: Final = 2.0  # seconds for another master to answer: it does so without waiting for anything


class OtherGroups:
    """The masters of the other groups, asked over their control sockets.

    A descriptor that is sent over a unix socket (SCM_RIGHTS, unix(7)) is the same open socket in both
    programs: a client in its accept queue is accepted by whoever comes first, and stays when one of the two
    closes its own.
    """

    def __init__(self, paths: Paths, program: str) -> None:
        self._paths = paths
        self._others = tuple(each for each in PROXIES if each != program)

    def lend(self, port: int) -> Iterator[socket.socket]:
        """Yield copies of what they listen on at a port, now the caller's."""
        for program in self._others:
            for descriptor in self._ask(program, Question(command="lend", values={"port": port})):
                yield socket.socket(fileno=descriptor)

    def taken(self, snapshot: int) -> None:
        """Tell them that what a snapshot gives us is accepted on."""
        for program in self._others:
            for descriptor in self._ask(program, Question(command="taken", values={"snapshot": snapshot})):
                os.close(descriptor)

    def _ask(self, program: str, question: Question) -> tuple[int, ...]:
        """Return the descriptors of an answer; one that does not run has nothing to lend."""
        try:
            with ControlClient(self._paths.control(program), timeout=_ANSWER_TIMEOUT) as client:
                return client.ask_for_descriptors(question, timeout=_ANSWER_TIMEOUT)[1]
        except ControlUnavailable:
            return ()
