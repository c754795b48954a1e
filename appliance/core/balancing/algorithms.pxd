# Types for a compiled algorithms.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.core.balancing.pool_member cimport PoolMember

cdef class RoundRobin:
    cdef public double _now
    cdef public double _max_lag

    @cython.locals(chosen=PoolMember, member=PoolMember)
    cpdef choose(self, members, key)
    @cython.locals(step=cython.double, turn=cython.double, earliest=cython.double)
    cpdef postpone(self, PoolMember chosen)
    cpdef reweigh(self, PoolMember member, double weight)
    cpdef members_changed(self)

cdef class LeastConnections(RoundRobin):
    pass

cdef class First(RoundRobin):
    pass

cdef class RandomOfTwo(RoundRobin):
    cdef public object _random
