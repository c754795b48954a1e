"""The privileges of the kernel that the appliance uses (capabilities(7))."""

from enum import IntEnum


class Capability(IntEnum):
    """Capabilities by their numbers of linux/capability.h."""

    CAP_CHOWN = 0
    CAP_DAC_READ_SEARCH = 2
    CAP_SETGID = 6
    CAP_SETUID = 7
    CAP_SETPCAP = 8
    CAP_NET_BIND_SERVICE = 10
    CAP_NET_ADMIN = 12
    CAP_NET_RAW = 13
    CAP_IPC_LOCK = 14
    CAP_SYS_NICE = 23
    CAP_SYS_RESOURCE = 24
