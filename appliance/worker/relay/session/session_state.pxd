# Types for a compiled session_state.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.core.balancing.frontend_state cimport FrontendState
from appliance.core.balancing.pool_member cimport PoolMember
from appliance.worker.relay.backend cimport Backend
from appliance.worker.relay.raw_sockets cimport set_on_connection
from appliance.worker.relay.session.session_end cimport close_sides
from appliance.worker.relay.copying cimport Side
from appliance.worker.relay.all_sessions cimport Traffic

# Constants that the module imports or sets: as C integers they are compared without a look-up.
cdef int CLOSED, CONNECTING, OPEN
cdef double _BRIEF

cdef class SessionState:
    cdef public Traffic traffic
    cdef public FrontendState frontend
    cdef public Backend backend
    cdef public bytes address
    cdef public double started
    cdef public Side client
    cdef public Side server
    cdef public PoolMember member
    cdef public tuple tried
    cdef public object early
    cdef public bytes key
    cdef public bint keepalive_set
    cdef public int phase
    cdef public int attempts
    cdef public int passed_over
    cdef public long long counted_in
    cdef public long long counted_out
    cdef public double deadline
    cdef public double max_age_at
    cdef public double connect_at
    cdef public double ready_at
    cdef public double dialled_at
    cdef public long long number

    cpdef expire_open(self, Side server, double now)
    @cython.locals(server=Side, received=cython.longlong, sent=cython.longlong, frontend=FrontendState, member=PoolMember)
    cpdef count_bytes(self)
    cpdef count_server_error(self, PoolMember member)
    cpdef count_abort(self, PoolMember member, reason)
    cpdef side_failed(self, Side side)
    @cython.locals(traffic=Traffic, phase=cython.int, member=PoolMember)
    cpdef end(self, reason)
    cpdef report(self, reason)
