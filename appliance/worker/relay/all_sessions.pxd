# Types for a compiled all_sessions.py (Cython's pure Python mode): the source stays as it is.
from appliance.worker.relay.poller cimport Poller
from appliance.worker.relay.raw_io cimport Transfer

cdef class Traffic:
    cdef public double now
    cdef public set live
    cdef public set failing_servers
    cdef public set every_tick
    cdef public list resting
    cdef public Py_ssize_t limit
    cdef public object pipes
    cdef public Poller poller
    cdef public Transfer transfer
    cdef public dict reasons
    cdef public object fault
    cdef public int hub_ticks
    cdef public object accept_failed
    cdef public object report
    cdef public object make_room
    cdef public object pause_full
    cdef public bint paused
    cdef public bint changed
    cdef public long long last_number
    cdef public double first_due
    cdef public double _lively_until
    cdef public double _hub_at
    cdef public list _sweep
    cdef public double _sweep_at
    cdef public long long _swept_events

    cpdef bint is_full(self)
    cpdef tick(self)
    cpdef wake_queued(self, waiter)
