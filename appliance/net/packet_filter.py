"""Classic BPF programs: the kernel drops what a socket is not interested in, so nobody is woken for it."""

import ctypes
import socket
import struct
from typing import Final

_ATTACH: Final = 26
"""SO_ATTACH_FILTER of asm-generic/socket.h; the socket module does not name it."""

_LOAD_BYTE: Final = 0x30  # BPF_LD | BPF_B | BPF_ABS
_LOAD_BYTE_INDEXED: Final = 0x50  # BPF_LD | BPF_B | BPF_IND
_LOAD_HEADER_LENGTH: Final = 0xB1  # BPF_LDX | BPF_B | BPF_MSH: the length of the IPv4 header at this offset
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_WHOLE: Final = 0x40000

_ROUTER_ID_AT: Final = 1
"""The id is the second byte in every version (RFC 9568 section 5.2, RFC 3768 section 5.3)."""

Instruction = tuple[int, int, int, int]
"""Code, jump when true, jump when false, constant: `struct sock_filter`."""


def router_id(number: int, *, family: int) -> tuple[Instruction, ...]:
    """Return the program for a raw socket that keeps the advertisements of one virtual router.

    A raw IPv4 socket gets its packets with the IP header, an IPv6 one without.
    """
    load: tuple[Instruction, ...] = ((_LOAD_BYTE, 0, 0, _ROUTER_ID_AT),)
    if family == socket.AF_INET:
        load = ((_LOAD_HEADER_LENGTH, 0, 0, 0), (_LOAD_BYTE_INDEXED, 0, 0, _ROUTER_ID_AT))
    return (*load, (_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _WHOLE), (_RETURN, 0, 0, 0))


def attach(receiver: socket.socket, program: tuple[Instruction, ...]) -> None:
    """Filter what the socket receives from now on; raises OSError when the kernel refuses the program."""
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    held = ctypes.create_string_buffer(code)
    receiver.setsockopt(socket.SOL_SOCKET, _ATTACH, struct.pack("HP", len(program), ctypes.addressof(held)))
