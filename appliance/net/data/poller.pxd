# Types of poller.pyx, for the compiled modules that are polled.

cdef class Pollable:
    cdef public long long turn

    cpdef on_events(self, unsigned int events)
    cpdef go_on(self)
