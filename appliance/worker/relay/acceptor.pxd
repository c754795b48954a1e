# Types for a compiled acceptor.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.core.balancing.frontend_state cimport FrontendState
from appliance.worker.relay.poller cimport Pollable
from appliance.worker.relay.raw_sockets cimport accept, peer, reset
from appliance.worker.relay.all_sessions cimport Traffic

cdef class Acceptor(Pollable):
    cdef public FrontendState frontend
    cdef public int descriptor
    cdef public Traffic _traffic
    cdef public object _open
    cdef public bint _started
    cdef public bint _watching
    cdef public bint _rotates
    cdef public object claim
    cdef public int _in_a_row
    cdef public int _batch
    cdef public int _most
    cdef public long long _last_turn
    cdef public double resume_at
    cdef public tuple place

    cpdef on_events(self, unsigned int events)
    @cython.locals(frontend=FrontendState, traffic=Traffic, fd=cython.int, turn=cython.longlong)
    cpdef _accept(self)
    @cython.locals(frontend=FrontendState, traffic=Traffic, address=bytes)
    cpdef _check_access(self, int fd)
