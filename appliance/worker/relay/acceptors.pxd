# Types for a compiled acceptors.py (Cython's pure Python mode): the source stays as it is.
from appliance.core.balancing.frontend_state cimport FrontendState
from appliance.worker.relay.all_sessions cimport Traffic

cdef class Acceptors:
    cdef public Traffic _traffic
    cdef public object _frontends
    cdef public object _backends
    cdef public list _acceptors
    cdef public object _neglected

    cpdef _relay(self, FrontendState frontend, int fd, bytes address)
