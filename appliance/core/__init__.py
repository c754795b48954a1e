"""Decisions over time, with `now` passed in: no sockets, clocks or logs."""
