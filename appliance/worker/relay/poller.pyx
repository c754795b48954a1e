# cython: language_level=3
"""`poller.py` compiled: epoll is called directly, and its events become no objects."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.errno cimport EINTR, errno
from libc.math cimport ceil
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from posix.unistd cimport close as c_close

from gevent import get_hub

cdef double _monotonic() nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef extern from "Python.h" nogil:
    ctypedef struct PyInterpreterState:
        pass
    ctypedef struct PyThreadState:
        pass
    PyInterpreterState* PyInterpreterState_Get()
    PyThreadState* PyInterpreterState_ThreadHead(PyInterpreterState*)
    PyThreadState* PyThreadState_Next(PyThreadState*)


cdef inline bint _is_alone():
    """Whether this is the only thread: then nobody waits for the interpreter's lock, and it is kept."""
    return PyThreadState_Next(PyInterpreterState_ThreadHead(PyInterpreterState_Get())) == NULL


cdef unsigned int _ALL = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET  # EPOLLET is bit 31
cdef class Pollable:
    """What a descriptor belongs to. `turn` is the poller's when it was registered."""

    cpdef on_events(self, unsigned int events):
        """Do what the new state of the descriptor allows; raises nothing."""
        raise NotImplementedError

    cpdef go_on(self):
        """Do what `later` was asked for; raises nothing."""
        raise NotImplementedError


cdef class _Hub(Pollable):
    """Notes that gevent's loop has something to do."""

    cpdef on_events(self, unsigned int events):
        """Note it."""
        self.ready = True


cdef class Poller:
    """Tells sides and acceptors of the events of their descriptors."""

    def __init__(self):
        self.loop = get_hub().loop
        self.turn = self.events = 0
        self._busy = []
        self._soon = []
        self._hub = _Hub()
        self._create()
        self._watcher = self.loop.io(self._epoll, 1)
        self._watcher.start(self._on_ready)

    cdef _create(self):
        self._epoll = epoll_create1(EPOLL_CLOEXEC)
        if self._epoll < 0:
            raise OSError(errno, "epoll_create1")

    def __dealloc__(self):
        cdef Py_ssize_t fd
        for fd in range(self._room):
            if self._sides[fd] != NULL:
                Py_DECREF(<object>self._sides[fd])
        PyMem_Free(self._sides)

    cpdef register(self, int fd, Pollable side, unsigned int events=_ALL):
        """Tell `side` of the events of a descriptor from now on, first of the state that it has."""
        cdef epoll_event event
        if fd >= self._room:
            self._grow(fd)
        event.events = events
        event.data.fd = fd
        if epoll_ctl(self._epoll, EPOLL_CTL_ADD, fd, &event) < 0:
            raise OSError(errno, "epoll_ctl")
        side.turn = self.turn
        Py_INCREF(side)
        self._sides[fd] = <PyObject*>side

    cpdef change(self, int fd, unsigned int events):
        """Tell of other events of a descriptor from now on, first of the state that it has."""
        cdef epoll_event event
        event.events = events
        event.data.fd = fd
        if epoll_ctl(self._epoll, EPOLL_CTL_MOD, fd, &event) < 0:
            raise OSError(errno, "epoll_ctl")

    cpdef forget(self, int fd):
        """Tell nobody of a descriptor that is about to be closed."""
        cdef PyObject* side = self._sides[fd]
        if side != NULL:
            self._sides[fd] = NULL
            Py_DECREF(<object>side)

    cpdef unregister(self, int fd):
        """Watch a descriptor no more that stays open, here or in another process."""
        self.forget(fd)
        if epoll_ctl(self._epoll, EPOLL_CTL_DEL, fd, NULL) < 0:
            raise OSError(errno, "epoll_ctl")

    cpdef later(self, Pollable side):
        """Let a side go on when the others have had their turn."""
        self._busy.append(side)
        self._ask()

    cpdef soon(self, callback):
        """Call this when the others have had their turn."""
        self._soon.append(callback)
        self._ask()

    def lead(self):
        """Look at gevent's loop from now on, where it has looked at this set until now; nothing is registered yet."""
        self.close()
        self._create()
        self._leads = True
        self.register(self.loop.fileno(), self._hub, EPOLLIN)

    def wait(self, double until):
        """Tell of events, and do what was put off, until this moment, or until gevent's loop has something.

        Returns whether it has.
        """
        cdef double left = until - _monotonic()
        cdef bint found = False
        self._hub.ready = False
        while True:
            # More has often come meanwhile, and to fall asleep and be woken costs more than a look.
            found = self._take(0 if found or self._asked or left <= 0.0 else <int>ceil(left * 1000.0)) > 0
            if self._asked:
                self._go_on()
            left = until - _monotonic()
            if self._hub.ready or left <= 0.0:
                return self._hub.ready

    def fileno(self):
        """Return the descriptor of the set, which is readable while there are events."""
        return self._epoll

    def close(self):
        """Close the set; no descriptor of a session is left."""
        self._watcher.close()
        c_close(self._epoll)

    cdef _grow(self, int fd):
        cdef Py_ssize_t room = max(2 * self._room, fd + 1, 1024)
        cdef PyObject** sides = <PyObject**>PyMem_Realloc(self._sides, room * sizeof(PyObject*))
        cdef Py_ssize_t each
        if sides == NULL:
            raise MemoryError()
        for each in range(self._room, room):
            sides[each] = NULL
        self._sides, self._room = sides, room

    cdef _ask(self):
        if not self._asked:
            self._asked = True
            if not self._leads:
                self.loop.run_callback(self._go_on)

    def _on_ready(self):
        self._take(0)

    cdef int _take(self, int milliseconds) except -1:
        cdef int each, fd, found, code
        cdef Pollable side
        self.turn += 1
        if milliseconds == 0 or _is_alone():
            found = epoll_wait(self._epoll, self._events, _BATCH, milliseconds)
            code = errno
        else:
            with nogil:
                found = epoll_wait(self._epoll, self._events, _BATCH, milliseconds)
                code = errno
        if found < 0:
            if code != EINTR:
                raise OSError(code, "epoll_wait")
            self._hub.ready = True  # libev writes to its own pipe only while it is libev that sleeps
            PyErr_CheckSignals()
        else:
            self.events += found
        for each in range(found):
            fd = self._events[each].data.fd
            if self._sides[fd] != NULL:
                side = <Pollable>self._sides[fd]
                if side.turn != self.turn:
                    side.on_events(self._events[each].events)
        return max(0, found)

    def _go_on(self):
        cdef Pollable side
        cdef list busy, soon
        self._asked = False
        busy, self._busy = self._busy, []
        for side in busy:
            side.go_on()
        soon, self._soon = self._soon, []
        for callback in soon:
            callback()
