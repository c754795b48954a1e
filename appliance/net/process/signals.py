"""Signals that are meant for somebody else: `systemctl kill` sends one to every process of a unit."""

import signal


def survive(*numbers: signal.Signals) -> None:
    """Do nothing at these signals, whose own meaning would be death; what we start has them as they are.

    An ignored signal stays so over exec, a handler does not: a script of an operator may want it.
    """
    for number in numbers:
        signal.signal(number, _do_nothing)


def _do_nothing(_: int, __: object) -> None:
    pass
