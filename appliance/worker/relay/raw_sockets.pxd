# Types of raw_sockets.pyx, for the compiled modules that call it directly.

cpdef int accept(int listener) except? -9999
cpdef bytes peer()
cpdef int connect(tuple address, tuple options) except? -9999
cpdef bytes local(int descriptor)
cpdef int connect_from(tuple address, tuple options, bytes source, int port) except? -9999
cpdef shutdown_write(int descriptor)
cpdef close(int descriptor)
cpdef reset(int descriptor)
cpdef set_on_connection(int descriptor, tuple wanted)
