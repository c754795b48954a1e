# Types of poller.pyx, for the compiled modules that call it directly.
from cpython.ref cimport PyObject

cdef extern from "sys/epoll.h" nogil:
    ctypedef union epoll_data_t:
        int fd
    cdef struct epoll_event:
        unsigned int events
        epoll_data_t data
    int epoll_create1(int)
    int epoll_ctl(int, int, int, epoll_event*)
    int epoll_wait(int, epoll_event*, int, int)
    int EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD
    unsigned int EPOLLIN, EPOLLOUT, EPOLLPRI, EPOLLRDHUP, EPOLLET

cdef enum:
    _BATCH = 256

cdef class Pollable:
    cdef public long long turn

    cpdef on_events(self, unsigned int events)
    cpdef go_on(self)

cdef class _Hub(Pollable):
    cdef bint ready

cdef class Poller:
    cdef readonly object loop
    cdef public long long turn
    cdef public long long events
    cdef int _epoll
    cdef PyObject** _sides
    cdef Py_ssize_t _room
    cdef list _busy
    cdef list _soon
    cdef bint _asked
    cdef bint _leads
    cdef _Hub _hub
    cdef object _watcher
    cdef epoll_event _events[_BATCH]

    cpdef register(self, int fd, Pollable side, unsigned int events=*)
    cpdef change(self, int fd, unsigned int events)
    cpdef forget(self, int fd)
    cpdef unregister(self, int fd)
    cpdef later(self, Pollable side)
    cpdef soon(self, callback)
    cdef _create(self)
    cdef _ask(self)
    cdef int _take(self, int milliseconds) except -1
    cdef _grow(self, int fd)
