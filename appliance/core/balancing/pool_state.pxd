# Types for a compiled pool_state.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.core.balancing.pool_member cimport PoolMember

cdef _count(PoolMember member)

cdef class PoolState:
    cdef public object config
    cdef public tuple members
    cdef public dict _removed
    cdef public int _workers
    cdef public int _index
    cdef public object _random
    cdef public object _health
    cdef public object _queue
    cdef public dict _waiting
    cdef public tuple _eligible
    cdef public bint _checking
    cdef public bint _has_up
    cdef public bint _limited
    cdef public object _balancer
    cdef public long long _max_queue

    cpdef place(self, bytes key, avoid=*)
    cpdef release(self, PoolMember member)
    cpdef dequeue(self, waiter)
