"""What a program finds when it starts, as a line of JSON on standard output: `python -m` this module."""

import ctypes
import json
import os
import random
import signal
import ssl
import sys
import threading
from pathlib import Path
from typing import Final

from gevent._hub_local import get_hub_if_exists

# PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_SECUREBITS and PR_GET_NO_NEW_PRIVS of linux/prctl.h.
_PRIVILEGES: Final = (3, 7, 27, 39)
_LIBRARY: Final = ctypes.CDLL(None)


def circumstances() -> dict[str, object]:
    """Return them; what two starts must not have in common is in `own`."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    signals = ("SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Threads")
    return {
        "same": {
            "descriptors": _descriptors(),
            "process": {name: status[name] for name in signals},
            "handlers": {
                number.name: str(signal.getsignal(number))
                for number in signal.Signals
                if signal.getsignal(number) is not signal.SIG_DFL
            },
            "words": Path("/proc/self/cmdline").read_bytes().decode().split("\0"),
            "arguments": sys.argv[1:],
            "environment": {name: value for name, value in os.environ.items() if name != "LC_CTYPE"},
            "shown": sorted(each for each in _shown() if not each.startswith("LC_CTYPE=")),
            "privileges": {option: _LIBRARY.prctl(option, 0, 0, 0, 0) for option in _PRIVILEGES},
            "user": [os.getresuid(), os.getresgid(), os.getgroups()],
            "loop": get_hub_if_exists() is not None,
            "threads": threading.active_count(),
            "main": sys.modules["__main__"].__name__,
            "oom": Path("/proc/self/oom_score_adj").read_text(),
        },
        "own": [random.getrandbits(64), ssl.RAND_bytes(8).hex(), os.urandom(8).hex()],
    }


def _shown() -> list[str]:
    """Return the environment that others see of this process."""
    return Path("/proc/self/environ").read_bytes().decode().removesuffix("\0").split("\0")


def _descriptors() -> list[int]:
    """Return the open ones but that by which they are listed."""
    found = [int(each.name) for each in Path("/proc/self/fd").iterdir()]
    return sorted(each for each in found if Path(f"/proc/self/fd/{each}").exists())


if __name__ == "__main__":
    if sys.argv[1:2] == ["fail"]:
        sys.exit("it must not be")
    sys.stdout.write(f"{json.dumps(circumstances())}\n")
    sys.stdout.flush()
    sys.exit(3)
