# Types for a compiled virtual_source.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.worker.relay.raw_sockets cimport connect, connect_from, local

cdef class VirtualSource:
    cdef readonly dict addresses
    cdef bint _chosen_here
    cdef int _count
    cdef tuple _from_node
    cdef dict _full
    cdef int _low
    cdef object _on_failure
    cdef tuple _options
    cdef int _tries

    @cython.locals(source=bytes, fd=cython.int, tries=cython.int, looked=cython.bint, port=cython.int)
    cpdef int connect(self, int client, tuple address) except? -9999
