"""`python -m bench`: measure, print the table, and write it into bench/README.md where asked to."""

import argparse
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from os import sched_getaffinity
from pathlib import Path

from support import tools

from bench import rounds, table
from bench.measures import Effort
from bench.profile import profile

_QUICK = Effort(seconds=1.0, bodies=2, idle=1000, requests=150)


def main() -> int:
    """Run what the command line asks for."""
    arguments = _arguments()
    absent = tools.missing(["haproxy", "nginx", "wrk", "strace"])
    if absent:
        print(f"bench: missing {', '.join(absent)}; as root: make debian")
        return 1
    if arguments.profile:
        print(profile())
        return 0
    count = arguments.rounds or (2 if arguments.quick else 6)
    effort = _QUICK if arguments.quick else Effort()
    results = rounds.measure(rounds=count, effort=effort, say=lambda text: print(text, file=sys.stderr))
    text = f"{_machine()}\n\n{table.markdown(results)}"
    print(text)
    if arguments.write:
        table.write(Path(__file__).parent / "README.md", text)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, help="interleaved rounds (6, or 2 with --quick)")
    parser.add_argument("--quick", action="store_true", help="short measures: a look, not a result")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    parser.add_argument("--profile", action="store_true", help="count syscalls per connection instead")
    return parser.parse_args()


def _machine() -> str:
    binary = tools.path("haproxy") or "haproxy"
    said = subprocess.run([binary, "-v"], capture_output=True, text=True, check=True).stdout.split()
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {len(sched_getaffinity(0))} processors, Linux {platform.release()}, "
        f"HAProxy {said[2]}, Python {platform.python_version()}, gevent {metadata.version('gevent')}."
    )


if __name__ == "__main__":
    sys.exit(main())
