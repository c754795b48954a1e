# Types for a compiled session_state.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.net.data.raw_sockets cimport set_on_connection
from appliance.net.data.session.session_end cimport close_sides
from appliance.net.data.sides cimport Side
from appliance.net.data.traffic cimport Traffic

cdef class SessionState:
    cdef public Traffic traffic
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
    cdef public bint keepalive_set
    cdef public int phase
    cdef public int attempts
    cdef public long long counted_in
    cdef public long long counted_out
    cdef public double deadline
    cdef public double max_age_at
    cdef public double connect_at
    cdef public double ready_at
    cdef public double dialled_at
    cdef public long long number

    cpdef expire_open(self, Side server, double now)
    cpdef count_bytes(self)
    cpdef count_server_error(self, member)
    cpdef count_abort(self, member, reason)
