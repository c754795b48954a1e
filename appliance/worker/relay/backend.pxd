# Types for a compiled backend.py (Cython's pure Python mode): the source stays as it is.
from appliance.core.balancing.pool_state cimport PoolState
from appliance.worker.relay.virtual_source cimport VirtualSource

cdef class Backend:
    cdef public PoolState pool
    cdef public list connects
    cdef public tuple options
    cdef public tuple keepalive
    cdef public int far
    cdef public VirtualSource source
    cdef public bint hashed
    cdef public bint proxied
    cdef public int retries
    cdef public double retry_delay
    cdef public double timeout_connect
    cdef public double timeout_queue
    cdef public double timeout_server
    cdef public double timeout_server_fin

    cpdef count_connect(self, double seconds)
