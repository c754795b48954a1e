# Types for a compiled session_end.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.worker.relay.raw_sockets cimport close, reset
from appliance.worker.relay.copying cimport Side

@cython.locals(clean=cython.bint, whole=cython.bint)
cpdef close_sides(Side client, Side server, reason)
