# cython: language_level=3, freethreading_compatible=False
"""`raw_io.py` compiled: direct system calls on one static buffer, and no object for what is moved."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.errno cimport EAGAIN, errno
from libc.string cimport memcpy

cdef extern from "sys/socket.h" nogil:
    # Not read and write: these go through the files' layer first, some 400 instructions for each pair.
    ssize_t recv(int, void*, size_t, int)
    ssize_t c_send "send"(int, const void*, size_t, int)
    int MSG_MORE, MSG_NOSIGNAL

cdef extern from "fcntl.h" nogil:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    """
    ssize_t c_splice "splice"(int, void*, int, void*, size_t, unsigned int)
    unsigned int SPLICE_F_NONBLOCK

CHUNK = 16384
AGAIN = -EAGAIN
COMPILED = True

cdef Py_ssize_t _CHUNK = 16384
cdef Py_ssize_t _LARGEST = 3 * 16384


cdef class Transfer:
    """The buffer: what `receive` has read last."""

    def __cinit__(self):
        self._buffer = <char*>PyMem_Malloc(_LARGEST)
        if self._buffer == NULL:
            raise MemoryError()

    def __dealloc__(self):
        PyMem_Free(self._buffer)

    cpdef Py_ssize_t receive(self, int source) except? -9999:
        """Read at most a chunk; return how much, 0 for a FIN, or minus the errno."""
        cdef Py_ssize_t size = recv(source, self._buffer, _CHUNK, 0)
        self._sent = 0
        self._size = size if size > 0 else 0
        return size if size >= 0 else -errno

    cpdef put(self, bytes data):
        """Write this with the next `send`: at most two chunks and a PROXY header."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
        if size > _LARGEST:
            raise ValueError(f"{size} bytes")
        memcpy(self._buffer, PyBytes_AS_STRING(data), size)
        self._size, self._sent = size, 0

    cpdef Py_ssize_t send(self, int target) except? -9999:
        """Write what was read last; return how much was taken, or minus the errno."""
        return self._send(target, MSG_NOSIGNAL)

    cpdef Py_ssize_t send_last(self, int target) except? -9999:
        """Write what was read last, and a FIN that the caller sends next goes with it; see `send`."""
        return self._send(target, MSG_NOSIGNAL | MSG_MORE)

    cdef Py_ssize_t _send(self, int target, int flags):
        cdef Py_ssize_t sent = c_send(target, self._buffer, self._size, flags)
        if sent < 0:
            return -errno
        self._sent = sent
        return sent

    cpdef Py_ssize_t left(self) except? -9999:
        """Return how many bytes of what was read last are not yet written."""
        return self._size - self._sent

    cpdef rest(self):
        """Return what was read last and not yet written."""
        return memoryview(self._buffer[self._sent:self._size])

    cpdef Py_ssize_t write(self, int target, const unsigned char[::1] data) except? -9999:
        """Write this; return how much was taken, or minus the errno."""
        cdef Py_ssize_t sent = c_send(target, &data[0], data.shape[0], MSG_NOSIGNAL)
        return sent if sent >= 0 else -errno

    cpdef Py_ssize_t splice(self, int source, int target, Py_ssize_t size) except? -9999:
        """Move bytes between a socket and a pipe; return how many, 0 for a FIN, or minus the errno."""
        cdef Py_ssize_t moved = c_splice(source, NULL, target, NULL, size, 0)
        return moved if moved >= 0 else -errno
