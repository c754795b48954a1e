# Types for a compiled sides.py (Cython's pure Python mode): the source stays as it is.
import cython

cdef class Side:
    cdef public object session
    cdef public object traffic
    cdef public int fd
    cdef public Side other
    cdef public object watcher
    cdef public object write_watcher
    cdef public object pipe
    cdef public object backlog
    cdef public double active_at
    cdef public long long count
    cdef public int full_reads
    cdef public int unacknowledged
    cdef public int spurious
    cdef public double spurious_at
    cdef public bint eof
    cdef public bint shut

    @cython.locals(size=cython.Py_ssize_t, sent=cython.Py_ssize_t, other=Side)
    cpdef copy(self)
    @cython.locals(size=cython.Py_ssize_t)
    cpdef fill(self, pipe)
    @cython.locals(other=Side)
    cpdef empty(self, pipe)
    cpdef hold(self, memoryview rest)
    cpdef block(self)
    cpdef unblock(self)
    cpdef flush(self, memoryview backlog)
    @cython.locals(other=Side)
    cpdef finish(self)
    cpdef return_pipe(self, pipe)
    cpdef spurious_wakeup(self)
    cpdef bint blocked(self)
    cpdef Py_ssize_t held(self)
    cpdef bint acknowledges(self)
    cpdef int release(self)
