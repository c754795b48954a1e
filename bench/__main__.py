"""`python -m bench`: measure, print the table, and write it into bench/README.md where asked to."""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from support.run import tools

from bench import (
    batches,
    compiled,
    cores,
    failover,
    held,
    kernel,
    listeners,
    many_routers,
    many_servers,
    moves,
    proxies,
    reload,
    rounds,
    shared_ips,
    source,
    table,
    whole,
)
from bench.measures import Effort
from bench.profile import profile
from bench.proxies import Start

_MINUTES = {
    "proxies": 6,
    "held": 6,
    "cores": 4,
    "listeners": 5,
    "reload": 2,
    "failover": 10,
    "moves": 3,
    "batches": 2,
    "routers": 2,
    "servers": 5,
    "kernel": 3,
    "shared": 8,
    "source": 2,
    "whole": 3,
}
_QUICK = Effort(slices=1, bodies=2, idle=1000, requests=150)


def main() -> int:
    """Run what the command line asks for."""
    arguments = _arguments()
    if arguments.profile or (arguments.compiled and arguments.part == "all"):
        arguments.part = "proxies"
    parts = {
        "proxies": _proxies,
        "held": _held,
        "cores": _cores,
        "listeners": _listeners,
        "reload": _reload,
        "failover": _failover,
        "moves": _moves,
        "batches": _batches,
        "routers": _routers,
        "servers": _servers,
        "kernel": _kernel,
        "shared": _shared,
        "source": _source,
        "whole": _whole,
    }
    asked = list(parts) if arguments.part == "all" else [arguments.part]
    if not arguments.quick:
        about = ", ".join(f"{part} {_MINUTES[part]}" for part in asked)
        print(f"bench: takes about so many minutes: {about}", file=sys.stderr)
    since = time.monotonic()
    status = max(parts[part](arguments) for part in asked)
    print(f"bench: took {(time.monotonic() - since) / 60:.0f} minutes", file=sys.stderr)
    return status


def _proxies(arguments: argparse.Namespace) -> int:
    absent = tools.missing(["haproxy", "nginx", proxies.STREAM_MODULE, "wrk", "strace"])
    if absent:
        print(f"bench: missing {', '.join(absent)}; as root: make debian")
        return 1
    with tempfile.TemporaryDirectory(prefix="lb-compiled-") as directory:
        if arguments.compiled:
            compiled.build(Path(directory))
        starts = rounds.contenders(Path(directory) if arguments.compiled else None)
        if arguments.profile:
            return _report("syscalls", profile(starts), arguments)
        return _measure(starts, arguments)


def _held(arguments: argparse.Namespace) -> int:
    if absent := tools.missing(["haproxy", "nginx", proxies.STREAM_MODULE]):
        print(f"bench: connections that are held are not measured: missing {', '.join(absent)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="lb-compiled-") as directory:
        package = _compiled(Path(directory))
        count = arguments.rounds or (1 if arguments.quick else 3)
        results = held.measure(
            rounds.contenders(package),
            rounds=count,
            connections=held.CONNECTIONS // (10 if arguments.quick else 1),
            seconds=2.0 if arguments.quick else 10.0,
            say=_say,
        )
    text = f"{_machine(_haproxy())} {count} rounds; load average {_load()}.\n\n{table.markdown(results)}"
    return _report("held", text, arguments)


def _listeners(arguments: argparse.Namespace) -> int:
    if absent := tools.missing(["nginx", "wrk", "strace"]):
        print(f"bench: kinds of listeners are not compared: missing {', '.join(absent)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="lb-compiled-") as directory:
        package = _compiled(Path(directory))
        count = arguments.rounds or (1 if arguments.quick else 6)
        rows = listeners.measure(package, rounds=count, effort=Effort(), say=_say)
    kind = "compiled" if package else "plain Python"
    text = f"{_machine(kind)} {count} rounds; load average {_load()}.\n\n{listeners.markdown(rows)}"
    return _report("listeners", text, arguments)


def _compiled(directory: Path) -> Path | None:
    """Return the directory of our package, compiled, or None where there is no compiler."""
    if tools.missing(["cc"]):
        return None
    compiled.build(directory)
    return directory


def _cores(arguments: argparse.Namespace) -> int:
    if absent := tools.missing(["haproxy", "nginx", "wrk", "cc"]):
        print(f"bench: several cores are not measured: missing {', '.join(absent)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="lb-compiled-") as directory:
        compiled.build(Path(directory))
        count = arguments.rounds or (2 if arguments.quick else 6)
        rows = cores.measure(Path(directory), rounds=count, effort=Effort(), say=_say)
    text = (
        f"{_machine(_haproxy())} {count} rounds; load average at the end {_load()}.\n\n{cores.markdown(rows)}"
    )
    return _report("cores", text, arguments)


def _reload(arguments: argparse.Namespace) -> int:
    if absent := tools.missing(["haproxy", "ss"]):
        print(f"bench: reloads are not measured: missing {', '.join(absent)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="lb-compiled-") as directory:
        package = Path(directory) if tools.path("cc") else None
        if package is not None:
            compiled.build(package)
        found = reload.measure(
            sessions=1000 if arguments.quick else reload.SESSIONS,
            rounds=arguments.rounds or (1 if arguments.quick else 5),
            package=package,
            say=_say,
        )
    text = f"{_machine(_haproxy())} Load average at the end {_load()}.\n\n{reload.markdown(found)}"
    return _report("reload", text, arguments)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _load() -> str:
    """Return the load averages of this moment, after a measurement."""
    return ", ".join(f"{value:.0f}" for value in os.getloadavg())


def _measure(starts: dict[str, Start], arguments: argparse.Namespace) -> int:
    count = arguments.rounds or (2 if arguments.quick else 6)
    effort = _QUICK if arguments.quick else Effort()
    results = rounds.measure(starts, rounds=count, effort=effort, say=_say)
    text = (
        f"{_machine(_haproxy())} {count} rounds; load average at the end {_load()}.\n\n"
        f"{table.markdown(results)}"
    )
    return _report("results", text, arguments)


def _failover(arguments: argparse.Namespace) -> int:
    objection = tools.objection(["keepalived", "tcpdump", "ip"], root=True)
    if objection is not None:
        print(f"bench: failover is not measured: {objection}")
        return 0
    count = arguments.rounds or (1 if arguments.quick else 3)
    results = failover.measure(rounds=count, say=_say)
    text = f"{_machine(_keepalived())} {count} rounds.\n\n{failover.markdown(results)}"
    return _report("failover", text, arguments)


def _moves(arguments: argparse.Namespace) -> int:
    objection = tools.objection(["keepalived", "haproxy", "ip", "nft"], root=True)
    if objection is not None:
        print(f"bench: planned moves are not measured: {objection}")
        return 0
    count = arguments.rounds or (1 if arguments.quick else 3)
    results = moves.measure(
        rounds=count,
        connections=moves.CONNECTIONS // (10 if arguments.quick else 1),
        say=_say,
    )
    rivals = f"{_keepalived()}, {_haproxy()}"
    text = f"{_machine(rivals)} {count} rounds; load average {_load()}.\n\n{moves.markdown(results)}"
    return _report("moves", text, arguments)


def _batches(arguments: argparse.Namespace) -> int:
    objection = tools.objection(["ip", "nft", "openssl"], root=True)
    if objection is not None:
        print(f"bench: sessions that move to another node are not measured: {objection}")
        return 0
    count = arguments.rounds or (1 if arguments.quick else 3)
    results = batches.measure(
        rounds=count,
        count=batches.COUNT // (5 if arguments.quick else 1),
        say=_say,
    )
    text = (
        f"{_machine('plain Python')} {count} rounds; load average {_load()}.\n\n{batches.markdown(results)}"
    )
    return _report("batches", text, arguments)


def _routers(arguments: argparse.Namespace) -> int:
    objection = tools.objection(["keepalived", "ip"], root=True)
    if objection is not None:
        print(f"bench: many virtual routers are not measured: {objection}")
        return 0
    shares = many_routers.measure(say=_say)
    text = f"{_machine(_keepalived())} Load average {_load()}.\n\n{many_routers.markdown(shares)}"
    return _report("routers", text, arguments)


def _servers(arguments: argparse.Namespace) -> int:
    count = arguments.rounds or (1 if arguments.quick else 3)
    sizes = many_servers.SIZES[:1] if arguments.quick else many_servers.SIZES
    found = {
        f"{servers:,} servers in {pools} pools": many_servers.measure(
            servers=servers, pools=pools, rounds=count, say=_say
        )
        for servers, pools in sizes
    }
    text = (
        f"{_machine('plain Python')} {count} rounds; load average {_load()}.\n\n"
        f"{many_servers.markdown(found)}"
    )
    return _report("servers", text, arguments)


def _kernel(arguments: argparse.Namespace) -> int:
    objection = tools.objection(["haproxy", "nginx", "wrk", "ip", "nft"], root=True)
    if objection is not None:
        print(f"bench: forwarding by the kernel is not measured: {objection}")
        return 0
    count = arguments.rounds or (2 if arguments.quick else 6)
    results = kernel.measure(rounds=count, say=_say)
    text = f"{_machine(_haproxy())} {count} rounds; load average {_load()}.\n\n{kernel.markdown(results)}"
    return _report("kernel", text, arguments)


def _shared(arguments: argparse.Namespace) -> int:
    objection = tools.objection(["ip", "nft", "bird", "vtysh"], root=True)
    if objection is not None:
        print(f"bench: shared IPs are not measured: {objection}")
        return 0
    count = arguments.rounds or (1 if arguments.quick else 3)
    results = shared_ips.measure(rounds=count, say=_say)
    speakers = f"BIRD {_said('bird', '--version').split()[2]}, FRR"
    text = f"{_machine(speakers)} {count} rounds; load average {_load()}.\n\n{shared_ips.markdown(results)}"
    return _report("shared", text, arguments)


def _source(arguments: argparse.Namespace) -> int:
    if absent := tools.missing(["nginx", "wrk"]):
        print(f"bench: `source: virtual-ip` is not measured: missing {', '.join(absent)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="lb-compiled-") as directory:
        package = _compiled(Path(directory))
        count = arguments.rounds or (2 if arguments.quick else 10)
        results = source.measure(package, count=count, effort=Effort(), say=_say)
    kind = "compiled" if package else "plain Python"
    text = f"{_machine(kind)} {count} rounds; load average {_load()}.\n\n{source.markdown(results)}"
    return _report("source", text, arguments)


def _whole(arguments: argparse.Namespace) -> int:
    if absent := tools.missing(["haproxy"]):
        print(f"bench: the whole appliance is not measured: missing {', '.join(absent)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="lb-compiled-") as directory:
        count = arguments.rounds or (1 if arguments.quick else 3)
        found = whole.measure(
            rounds=count,
            package=_compiled(Path(directory)),
            seconds=3.0 if arguments.quick else 20.0,
            say=_say,
        )
    text = f"{_machine(_haproxy())} {count} rounds; load average {_load()}.\n\n{whole.markdown(found)}"
    return _report("whole", text, arguments)


def _report(section: str, text: str, arguments: argparse.Namespace) -> int:
    print(text)
    if arguments.write:
        table.write(Path(__file__).parent / "README.md", section, text)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "part",
        nargs="?",
        choices=["all", *_MINUTES],
        default="all",
        help="what to measure (all)",
    )
    parser.add_argument(
        "--rounds", type=int, help="interleaved rounds (6, or 2 with --quick; failover 3 or 1)"
    )
    parser.add_argument("--quick", action="store_true", help="short measures: a look, not a result")
    parser.add_argument("--compiled", action="store_true", help="measure our package compiled as well")
    parser.add_argument("--write", action="store_true", help="put the result into bench/README.md")
    parser.add_argument("--profile", action="store_true", help="count syscalls per connection instead")
    return parser.parse_args()


def _machine(rival: str) -> str:
    processors = len(os.sched_getaffinity(0))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {processors} processors, Linux {platform.release()}, "
        f"{rival}, Python {platform.python_version()}, gevent {metadata.version('gevent')}."
    )


def _haproxy() -> str:
    return f"HAProxy {_said('haproxy', '-v').split()[2]}"


def _keepalived() -> str:
    return f"keepalived {_said('keepalived', '--version').split()[1].removeprefix('v')}"


def _said(program: str, option: str) -> str:
    ran = subprocess.run([tools.path(program) or program, option], capture_output=True, text=True, check=True)
    return ran.stdout + ran.stderr


if __name__ == "__main__":
    sys.exit(main())
