"""Classic BPF programs (socket(7), SO_ATTACH_FILTER): the kernel drops packets that a socket does not need.

So this process is not woken by unrelated ARP, of which a large network has hundreds a second. A program is a
list of instructions: load bytes of the packet, compare and jump forwards, return how many bytes to keep.
"""

import ctypes
import socket
import struct
from collections.abc import Iterable
from typing import Final

from appliance.wire import literal

_ATTACH: Final = 26
"""SO_ATTACH_FILTER of asm-generic/socket.h; the socket module does not name it."""

_LOAD_WORD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_LOAD_BYTE: Final = 0x30  # BPF_LD | BPF_B | BPF_ABS
_LOAD_BYTE_INDEXED: Final = 0x50  # BPF_LD | BPF_B | BPF_IND
_LOAD_HEADER_LENGTH: Final = 0xB1  # BPF_LDX | BPF_B | BPF_MSH: the length of the IPv4 header at this offset
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_WHOLE: Final = 0x40000  # bytes to keep: more than any packet has

# Offsets in an Ethernet frame: RFC 826, and RFC 4861 section 4.4 behind an IPv6 header without extensions.
_ARP_SENDER: Final = 28
_NEXT_HEADER: Final = 20
_ICMP_TYPE: Final = 54
_NEIGHBOUR_TARGET_END: Final = 74
_ICMP_6: Final = 58
_NEIGHBOUR_ADVERTISEMENT: Final = 136

_ROUTER_ID_AT: Final = 1
"""The id is the second byte in every version (RFC 9568 section 5.2, RFC 3768 section 5.3)."""

Instruction = tuple[int, int, int, int]
"""Code, jump when true, jump when false, constant: `struct sock_filter`."""

Program = tuple[Instruction, ...]


_REFUSE: Final[Instruction] = (_RETURN, 0, 0, 0)


def router_id(number: int, *, family: int) -> Program:
    """Return the program for a raw socket that keeps only the advertisements of one virtual router.

    A raw IPv4 socket gets its packets with the IP header (raw(7)), which may have options, so its length must
    be loaded; a raw IPv6 one without.
    """
    load: Program = ((_LOAD_BYTE, 0, 0, _ROUTER_ID_AT),)
    if family == socket.AF_INET:
        load = ((_LOAD_HEADER_LENGTH, 0, 0, 0), (_LOAD_BYTE_INDEXED, 0, 0, _ROUTER_ID_AT))
    return (*load, *_accept(number), _REFUSE)


def claims(addresses: Iterable[str], *, family: int) -> Program:
    """Return the program for a packet socket that keeps frames that claim one of the addresses.

    For IPv4 those are ARP packets with it as the sender, on a socket that gets ARP only. For IPv6 they are
    neighbour advertisements whose target ends with the same four bytes: a register of classic BPF has no
    more, so the reader compares the whole address.
    """
    ends = [int.from_bytes(literal.packed(address)[-4:], "big") for address in addresses]
    accepted = [instruction for end in ends for instruction in _accept(end)]
    if family == socket.AF_INET:
        return ((_LOAD_WORD, 0, 0, _ARP_SENDER), *accepted, _REFUSE)
    return (
        *((_LOAD_BYTE, 0, 0, _NEXT_HEADER), (_JUMP_EQUAL, 1, 0, _ICMP_6), _REFUSE),
        *((_LOAD_BYTE, 0, 0, _ICMP_TYPE), (_JUMP_EQUAL, 1, 0, _NEIGHBOUR_ADVERTISEMENT), _REFUSE),
        *((_LOAD_WORD, 0, 0, _NEIGHBOUR_TARGET_END), *accepted, _REFUSE),
    )


def attach(receiver: socket.socket, program: Program) -> None:
    """Filter what a socket receives from now on; raises OSError if the kernel refuses the program."""
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    held = ctypes.create_string_buffer(code)
    receiver.setsockopt(socket.SOL_SOCKET, _ATTACH, struct.pack("HP", len(program), ctypes.addressof(held)))


def _accept(value: int) -> tuple[Instruction, Instruction]:
    """Return instructions that keep the packet if this value was loaded, and continue if not."""
    return (_JUMP_EQUAL, 0, 1, value), (_RETURN, 0, 0, _WHOLE)
