# Types for a compiled session.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.net.data.session.session_state cimport SessionState
from appliance.net.data.sides cimport Side

cdef class Session(SessionState):
    cpdef act_on(self, decision)
    cpdef assign(self, member)
    cpdef enqueue(self)
    cpdef delay(self, double seconds)
    cpdef keep_early(self, bytes data)
    cpdef connect(self, member)
    cpdef send_first(self, Side server)
    cpdef enter_open(self, Side server)
    cpdef count_connected(self)
    cpdef retry(self, reason)
    cpdef connect_after_delay(self)
