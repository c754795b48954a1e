# Types for a compiled session.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.core.balancing.pool_member cimport PoolMember
from appliance.worker.relay.raw_sockets cimport close, connect
from appliance.worker.relay.session.session_state cimport SessionState
from appliance.worker.relay.copying cimport Side
from appliance.worker.relay.backend cimport Backend
from appliance.worker.relay.all_sessions cimport Traffic
from appliance.worker.relay.raw_io cimport Transfer
from appliance.worker.relay.virtual_source cimport VirtualSource

# Constants that the module imports or sets: as C integers they are compared without a look-up.
cdef int CLOSED, CONNECTING, DELAYED, OPEN, QUEUED, AGAIN, CHUNK, _FAR, _MOST_PASSED_OVER
cdef unsigned int WRITABLE

cdef class Session(SessionState):
    cpdef act_on(self, decision)
    @cython.locals(left=PoolMember)
    cpdef assign(self, PoolMember member)
    cpdef enqueue(self)
    cpdef delay(self, double seconds)
    cpdef on_side_events(self, Side side, unsigned int events)
    cpdef keep_early(self, bytes data)
    @cython.locals(server=Side, backend=Backend, source=VirtualSource, now=cython.double, fd=cython.int)
    cpdef connect(self, PoolMember member)
    @cython.locals(server=Side)
    cpdef on_connected(self, unsigned int events)
    @cython.locals(size=cython.Py_ssize_t)
    cpdef write_at_once(self, Side server)
    @cython.locals(size=cython.Py_ssize_t)
    cpdef bint send_first(self, Side server)
    @cython.locals(client=Side, transfer=Transfer, sent=cython.Py_ssize_t)
    cpdef bint write_first(self, Side server)
    @cython.locals(transfer=Transfer, size=cython.Py_ssize_t)
    cpdef Py_ssize_t receive_first(self, Side client)
    @cython.locals(client=Side, traffic=Traffic)
    cpdef enter_open(self, Side server)
    @cython.locals(member=PoolMember, seconds=cython.double)
    cpdef count_connected(self)
    @cython.locals(server=Side, member=PoolMember)
    cpdef retry(self, reason)
    cpdef connect_after_delay(self)
