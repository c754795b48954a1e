# Types for a compiled moving.py (Cython's pure Python mode): the source stays as it is.
import cython

from appliance.core.balancing.frontend_state cimport FrontendState
from appliance.core.balancing.pool_member cimport PoolMember
from appliance.worker.relay.backend cimport Backend
from appliance.worker.relay.session.session cimport Session
from appliance.worker.relay.copying cimport Side
from appliance.worker.relay.all_sessions cimport Traffic

# Constants that the module imports or sets: as C integers they are compared without a look-up.
cdef int CLOSED, CONNECTING, DELAYED, OPEN, QUEUED

@cython.locals(server=Side, resting=list)
cpdef bint can_move(Session session)
cpdef bint waits(Session session)
cpdef tuple stage(Session session)
@cython.locals(side=Side)
cpdef hold_still(Session session)
@cython.locals(side=Side)
cpdef go_on(Session session)
cpdef try_again(Session session)
@cython.locals(side=Side)
cpdef note_copies(Session session)
@cython.locals(side=Side, traffic=Traffic, member=PoolMember)
cpdef leave(Session session)
@cython.locals(member=PoolMember, server=Side, now=cython.double)
cpdef description(Session session, name)
@cython.locals(side=Side)
cpdef list descriptors(Session session)
@cython.locals(session=Session)
cpdef arrive(Traffic traffic, FrontendState frontend, Backend backend, moving, owned)
@cython.locals(now=cython.double)
cpdef _settle(Session session, moving, pipes)
@cython.locals(traffic=Traffic, client=Side, side=Side)
cpdef _relay(Session session, Side server, tuple moved, pipes)
cpdef tuple _sides(Session session)
cpdef tuple _watched(Session session)
cpdef _description(Side side, double now)
cpdef _restore(Side side, moved, double now)
cpdef double _ago(double now, double then)
