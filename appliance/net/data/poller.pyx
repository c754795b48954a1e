# cython: language_level=3
"""`poller.py` compiled: epoll is called directly, and its events become no objects."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.errno cimport errno
from posix.unistd cimport close as c_close

from gevent import get_hub

cdef extern from "sys/epoll.h" nogil:
    ctypedef union epoll_data_t:
        int fd
    cdef struct epoll_event:
        unsigned int events
        epoll_data_t data
    int epoll_create1(int)
    int epoll_ctl(int, int, int, epoll_event*)
    int epoll_wait(int, epoll_event*, int, int)
    int EPOLL_CLOEXEC, EPOLL_CTL_ADD
    unsigned int EPOLLIN, EPOLLOUT, EPOLLPRI, EPOLLRDHUP, EPOLLET

cdef unsigned int _EVENTS = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET  # EPOLLET is bit 31
cdef enum:
    _BATCH = 256


cdef class Pollable:
    """What a descriptor belongs to. `turn` is the poller's when it was registered."""

    cpdef on_events(self, unsigned int events):
        """Do what the new state of the descriptor allows; raises nothing."""
        raise NotImplementedError

    cpdef go_on(self):
        """Do what `later` was asked for; raises nothing."""
        raise NotImplementedError


cdef class Poller:
    """Tells sides of the events of their descriptors."""

    cdef readonly object loop
    cdef public long long turn
    cdef int _epoll
    cdef PyObject** _sides
    cdef Py_ssize_t _room
    cdef list _busy
    cdef bint _again
    cdef object _watcher
    cdef epoll_event _events[_BATCH]

    def __init__(self):
        self.loop = get_hub().loop
        self.turn = 0
        self._busy = []
        self._epoll = epoll_create1(EPOLL_CLOEXEC)
        if self._epoll < 0:
            raise OSError(errno, "epoll_create1")
        self._watcher = self.loop.io(self._epoll, 1)
        self._watcher.start(self._on_ready)

    def __dealloc__(self):
        cdef Py_ssize_t fd
        for fd in range(self._room):
            if self._sides[fd] != NULL:
                Py_DECREF(<object>self._sides[fd])
        PyMem_Free(self._sides)

    cpdef register(self, int fd, Pollable side):
        """Tell `side` of the events of a descriptor from now on, first of the state that it has."""
        cdef epoll_event event
        if fd >= self._room:
            self._grow(fd)
        event.events = _EVENTS
        event.data.fd = fd
        if epoll_ctl(self._epoll, EPOLL_CTL_ADD, fd, &event) < 0:
            raise OSError(errno, "epoll_ctl")
        side.turn = self.turn
        Py_INCREF(side)
        self._sides[fd] = <PyObject*>side

    cpdef forget(self, int fd):
        """Tell nobody of a descriptor that is about to be closed."""
        cdef PyObject* side = self._sides[fd]
        if side != NULL:
            self._sides[fd] = NULL
            Py_DECREF(<object>side)

    cpdef later(self, Pollable side):
        """Let a side go on when the others have had their turn."""
        self._busy.append(side)
        if not self._again:
            self._again = True
            self.loop.run_callback(self._go_on)

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

    def _on_ready(self):
        cdef int each, fd
        cdef int found
        cdef Pollable side
        self.turn += 1
        found = epoll_wait(self._epoll, self._events, _BATCH, 0)
        for each in range(found):
            fd = self._events[each].data.fd
            if self._sides[fd] != NULL:
                side = <Pollable>self._sides[fd]
                if side.turn != self.turn:
                    side.on_events(self._events[each].events)

    def _go_on(self):
        cdef Pollable side
        self._again = False
        busy, self._busy = self._busy, []
        for side in busy:
            side.go_on()
