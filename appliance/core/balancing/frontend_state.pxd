# Types for a compiled frontend_state.py (Cython's pure Python mode): the source stays as it is.

cdef class FrontendState:
    cdef public object config
    cdef public object access_lists
    cdef public str pool
    cdef public object routes
    cdef public object client_routes
    cdef public double timeout_hello
    cdef public long long current
    cdef public long long total
    cdef public long long denied
    cdef public long long failed
    cdef public long long bytes_in
    cdef public long long bytes_out
    cdef public long long limit
    cdef public double max_age
    cdef public double timeout_client
    cdef public double timeout_client_fin

    cpdef bint is_full(self)
