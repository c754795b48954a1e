# Types for a compiled copying.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.worker.relay.poller cimport Pollable
from appliance.worker.relay.raw_sockets cimport set_on_connection, shutdown_write
from appliance.worker.relay.all_sessions cimport Traffic
from appliance.worker.relay.raw_io cimport Transfer

# Constants that the module imports or sets: as C integers they are compared without a look-up.
cdef int AGAIN, CHUNK, PIPE_SIZE, _BULK, _IN_A_ROW
cdef unsigned int ALL, ERROR, FIN, INCOMING, URGENT, WRITABLE

cdef class Side(Pollable):
    cdef public object session
    cdef public Traffic traffic
    cdef public int fd
    cdef public Side other
    cdef public object pipe
    cdef public object backlog
    cdef public double active_at
    cdef public long long count
    cdef public int full_reads
    cdef public int unacknowledged
    cdef public bint copied
    cdef public bint hears_room
    cdef public bint in_line
    cdef public bint registered
    cdef public bint relays
    cdef public bint readable
    cdef public bint uncertain
    cdef public bint fin
    cdef public bint first
    cdef public bint eof
    cdef public bint shut

    cpdef watch(self)
    cpdef watch_writable(self)
    cpdef pause(self)
    cpdef on_events(self, unsigned int events)
    cpdef note(self, unsigned int events)
    cpdef read_in_line(self)
    cpdef go_on(self)
    cpdef on_readable(self)
    cpdef move_first(self)
    @cython.locals(transfer=Transfer, size=cython.Py_ssize_t, sent=cython.Py_ssize_t, other=Side, emptied=cython.bint, last=cython.bint)
    cpdef copy(self)
    cpdef read_nothing(self, Py_ssize_t result)
    @cython.locals(transfer=Transfer, size=cython.Py_ssize_t)
    cpdef fill(self, pipe)
    @cython.locals(transfer=Transfer, size=cython.Py_ssize_t, other=Side)
    cpdef empty(self, pipe)
    cpdef hold(self, memoryview rest)
    cpdef on_writable(self)
    @cython.locals(sent=cython.Py_ssize_t)
    cpdef flush(self, memoryview backlog)
    @cython.locals(other=Side)
    cpdef finish(self)
    cpdef return_pipe(self, pipe)
    cpdef resume(self)
    cpdef bint blocked(self)
    cpdef Py_ssize_t held(self)
    cpdef bint acknowledges(self)
    cpdef int release(self)
