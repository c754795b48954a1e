# Types of raw_io.pyx, for the compiled modules that call it directly.

cdef class Transfer:
    cdef char* _buffer
    cdef Py_ssize_t _size
    cdef Py_ssize_t _sent

    cpdef Py_ssize_t receive(self, int source) except? -9999
    cpdef put(self, bytes data)
    cpdef Py_ssize_t send(self, int target) except? -9999
    cpdef Py_ssize_t send_last(self, int target) except? -9999
    cdef Py_ssize_t _send(self, int target, int flags)
    cpdef Py_ssize_t left(self) except? -9999
    cpdef rest(self)
    cpdef Py_ssize_t write(self, int target, const unsigned char[::1] data) except? -9999
    cpdef Py_ssize_t splice(self, int source, int target, Py_ssize_t size) except? -9999
