# Compiled as it is, but for the members: calls and loops are what it saves.
from appliance.core.balancing.pool_member cimport PoolMember

cdef _count(PoolMember member)
