"""Signals that are meant for another program: `systemctl kill` sends one to every process of a unit."""

import signal


def survive(*numbers: signal.Signals) -> None:
    """Do nothing at these signals, whose default would kill us; programs that we start have the default.

    An ignored signal stays ignored over exec, a handler does not: a script of an operator may want the
    signal.
    """
    for number in numbers:
        signal.signal(number, _do_nothing)


def _do_nothing(_: int, __: object) -> None:
    pass
