# Types for a compiled pool_member.py (Cython's pure Python mode): the source stays as it is.

cdef class PoolMember:
    cdef public object pool
    cdef public object config
    cdef public tuple address
    cdef public long long limit
    cdef public object seed
    cdef public double turn
    cdef public double weight
    cdef public object state
    cdef public object admin
    cdef public bint unreachable
    cdef public object operator_weight
    cdef public long long errors
    cdef public long long current
    cdef public long long total
    cdef public long long failed
    cdef public long long queued
    cdef public long long bytes_in
    cdef public long long bytes_out
    cdef public long long given_up
    cdef public long long retried
    cdef public long long redispatched
    cdef public long long client_aborts
    cdef public long long server_aborts
    cdef public long long connected
    cdef public long long ended
    cdef public double queue_seconds
    cdef public double connect_seconds
    cdef public double session_seconds
    cdef public double longest_queue
    cdef public double longest_connect
    cdef public double longest_session

    cpdef count_connect(self, double queued, double seconds)
    cpdef count_end(self, double seconds)
