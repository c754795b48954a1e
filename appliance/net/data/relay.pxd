# Types for a compiled relay.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.net.data.sides cimport Side

cdef class Session:
    cdef public object traffic
    cdef public object frontend
    cdef public object backend
    cdef public bytes address
    cdef public double started
    cdef public Side client
    cdef public Side server
    cdef public object member
    cdef public tuple tried
    cdef public object early
    cdef public bytes key
    cdef public bint kept
    cdef public int phase
    cdef public int attempts
    cdef public long long counted_in
    cdef public long long counted_out
    cdef public double deadline
    cdef public double expires
    cdef public double connect_at
    cdef public double ready_at
    cdef public long long number

    cpdef settle(self, decision)
    cpdef take(self, member)
    cpdef wait(self)
    cpdef delay(self, double seconds)
    cpdef keep_early(self, bytes data)
    cpdef connect(self, member)
    cpdef greet(self, Side server)
    cpdef opened(self, Side server)
    cpdef retry(self, reason)
    cpdef suspect(self, member)
    cpdef expire_early(self)
    cpdef expire_open(self, Side server, double now)
    cpdef expire_side(self, Side side, reason)
    cpdef count_bytes(self)
    cpdef close(self, reason)
