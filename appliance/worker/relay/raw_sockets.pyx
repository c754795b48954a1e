# cython: language_level=3
"""`raw_sockets.py` compiled: direct system calls, and addresses that become no objects."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8
from libc.errno cimport EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EINPROGRESS, EINVAL, errno
from libc.stdint cimport uint16_t, uint32_t
from libc.string cimport memcmp, memcpy, memset, strchr
from posix.unistd cimport close as c_close

import os

cdef extern from "sys/socket.h" nogil:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <sys/socket.h>
    #include <netinet/in.h>
    #include <arpa/inet.h>
    """
    ctypedef unsigned int socklen_t
    struct sockaddr:
        pass
    struct linger:
        int l_onoff
        int l_linger
    int accept4(int, sockaddr*, socklen_t*, int)
    int c_connect "connect"(int, sockaddr*, socklen_t)
    int c_bind "bind"(int, const sockaddr*, socklen_t)
    int getsockname(int, sockaddr*, socklen_t*)
    int socket(int, int, int)
    int setsockopt(int, int, int, const void*, socklen_t)
    int shutdown(int, int)
    int AF_INET, AF_INET6, SOCK_STREAM, SOCK_NONBLOCK, SOCK_CLOEXEC, SHUT_WR, SOL_SOCKET, SO_LINGER

cdef extern from "netinet/in.h" nogil:
    struct in_addr:
        uint32_t s_addr
    struct in6_addr:
        pass
    struct sockaddr_in:
        uint16_t sin_family
        uint16_t sin_port
        in_addr sin_addr
    struct sockaddr_in6:
        uint16_t sin6_family
        uint16_t sin6_port
        in6_addr sin6_addr

cdef extern from "arpa/inet.h" nogil:
    int inet_pton(int, const char*, void*)
    uint16_t htons(uint16_t)

cdef enum:
    _SIZE = 28

STREAM = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC
Option = tuple[int, int, int]

cdef char _peer[_SIZE]
cdef linger _RESET
_RESET.l_onoff, _RESET.l_linger = 1, 0
cdef const char* _MAPPED = b"\0\0\0\0\0\0\0\0\0\0\xff\xff"


cpdef int accept(int listener) except? -9999:
    """Return the descriptor of the next connection, or minus the errno; `peer` returns its address."""
    cdef socklen_t size = _SIZE
    cdef int descriptor = accept4(listener, <sockaddr*>_peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC)
    return descriptor if descriptor >= 0 else -errno


cpdef bytes peer():
    """Return the address of the connection that `accept` returned last, as a raw `wire.sockaddr`."""
    return PyBytes_FromStringAndSize(_peer, _SIZE)


cpdef bytes local(int descriptor):
    """Return the address that a client has connected to, as `sockaddr.packed` does."""
    cdef char raw[_SIZE]
    cdef socklen_t size = _SIZE
    memset(raw, 0, _SIZE)
    getsockname(descriptor, <sockaddr*>raw, &size)
    if (<sockaddr_in*>raw).sin_family == AF_INET:
        return PyBytes_FromStringAndSize(raw + 4, 4)
    if memcmp(raw + 8, _MAPPED, 12) == 0:
        return PyBytes_FromStringAndSize(raw + 20, 4)
    return PyBytes_FromStringAndSize(raw + 8, 16)


cpdef int connect(tuple address, tuple options) except? -9999:
    """Begin to connect to a literal address; return the descriptor, or minus the errno."""
    return _connect(address, options, NULL, 0)


cpdef int connect_from(tuple address, tuple options, bytes source, int port) except? -9999:
    """Do the same from an address as `sockaddr.raw` makes it; with port 0 the kernel chooses the port.

    EADDRNOTAVAIL is that this machine does not have the address, EADDRINUSE that no port is free,
    EAFNOSUPPORT that the server's address is of another family.
    """
    return _connect(address, options, PyBytes_AS_STRING(source), port)


cdef int _connect(tuple address, tuple options, const char* source, int port) except? -9999:
    cdef sockaddr_in6 six, here
    cdef const char* host = PyUnicode_AsUTF8(address[0])
    cdef int family = AF_INET6 if strchr(host, b":") != NULL else AF_INET
    cdef uint16_t there = address[1]  # OverflowError for what is no port
    cdef socklen_t size = _fill(&six, family, host, there)
    cdef int descriptor, code, level, option, value
    if size == 0:
        return -EINVAL
    if source != NULL and (<const sockaddr_in*>source).sin_family != family:
        return -EAFNOSUPPORT
    descriptor = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    if descriptor < 0:
        return -errno
    for level, option, value in options:
        if setsockopt(descriptor, level, option, &value, sizeof(int)) < 0:
            return _failed(descriptor, errno)
    if source != NULL:
        # The size of the server's address is that of all addresses of the family.
        memcpy(&here, source, size)
        (<sockaddr_in*>&here).sin_port = htons(port)
        if c_bind(descriptor, <sockaddr*>&here, size) < 0:
            return _failed(descriptor, errno)
    if c_connect(descriptor, <sockaddr*>&six, size) < 0:
        code = errno
        if code != EINPROGRESS:
            return _failed(descriptor, EADDRINUSE if source != NULL and code == EADDRNOTAVAIL else code)
    return descriptor


cdef socklen_t _fill(sockaddr_in6* six, int family, const char* host, uint16_t port):
    """Make a socket address; return its size, 0 if the host is none of the family."""
    cdef sockaddr_in* four = <sockaddr_in*>six
    memset(six, 0, sizeof(sockaddr_in6))
    four.sin_family = family
    four.sin_port = htons(port)
    if inet_pton(family, host, &four.sin_addr if family == AF_INET else <void*>&six.sin6_addr) != 1:
        return 0
    return sizeof(sockaddr_in) if family == AF_INET else sizeof(sockaddr_in6)


cdef int _failed(int descriptor, int code):
    c_close(descriptor)
    return -code


cpdef shutdown_write(int descriptor):
    """Send a FIN; where the connection has ended already the next read reports it."""
    shutdown(descriptor, SHUT_WR)


cpdef close(int descriptor):
    """Close with a FIN, or with a RST where received bytes were not read."""
    if c_close(descriptor) < 0:
        raise OSError(errno, os.strerror(errno))


cpdef reset(int descriptor):
    """Close with a RST (SO_LINGER of 0 s): the peer sees an error, and no TIME_WAIT holds the port."""
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &_RESET, sizeof(_RESET))
    close(descriptor)


cpdef set_on_connection(int descriptor, tuple wanted):
    """Set options on a connection; where it has ended already the next read reports it."""
    cdef int level, option, value
    for level, option, value in wanted:
        setsockopt(descriptor, level, option, &value, sizeof(int))
