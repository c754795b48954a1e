"""Listening sockets: what is bound, what is kept, and what an operator reads when a bind fails."""

import array
import os
import platform
import re
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.network.ports import free_port

from appliance.model.snapshot.frontends import Bind
from appliance.net.listening.bind_addresses import Address
from appliance.net.listening.listeners import Listeners, ReservedBinds

pytestmark = pytest.mark.sockets


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    """Return a holder without sockets, and close what it has in the end."""
    listeners = Listeners()
    yield listeners
    listeners.keep_only(())


def reserved(listeners: Listeners, *binds: Bind) -> ReservedBinds:
    """Reserve binds that must be had."""
    result = listeners.reserve(binds)
    assert isinstance(result, ReservedBinds), result
    return result


def refused(listeners: Listeners, *binds: Bind) -> list[str]:
    """Reserve binds that must not be had, and return what the operator reads."""
    result = listeners.reserve(binds)
    assert not isinstance(result, ReservedBinds)
    return [str(problem) for problem in result]


def reaches(host: str, port: int) -> bool:
    """Say whether a connection is taken."""
    try:
        with socket.create_connection((host, port), timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    ("host", "at"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("0.0.0.0", "127.0.0.1")]
)
def test_literal(listeners: Listeners, host: str, at: str) -> None:
    """A literal address of either family listens."""
    bind = Bind(host=host, port=free_port())
    assert reserved(listeners, bind).addresses[bind] == (Address(host, bind.port),)
    assert reaches(at, bind.port)


def test_who_has_ports_is_read_once_for_all(listeners: Listeners, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many binds are taken: the kernel's table of connections may be long."""
    read: list[str] = []
    read_text = Path.read_text

    def noting(path: Path, *arguments: str | None) -> str:
        read.append(str(path))
        return read_text(path, *arguments)

    monkeypatch.setattr(Path, "read_text", noting)
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        binds = [Bind(host="127.0.0.1", port=each.getsockname()[1]) for each in taken]
        said = refused(listeners, *binds)
    assert [f"(pid {os.getpid()})" in each for each in said] == [True] * 3
    assert read.count("/proc/net/tcp") == 1


def test_dual_stack(listeners: Listeners) -> None:
    """One socket bound to :: serves both families."""
    bind = Bind(host="::", port=free_port())
    assert reserved(listeners, bind).addresses[bind] == (Address("::", bind.port),)
    assert reaches("127.0.0.1", bind.port)
    assert reaches("::1", bind.port)


def test_name_has_all_its_addresses(listeners: Listeners) -> None:
    """A name listens on every address it stands for."""
    bind = Bind(host="localhost", port=free_port())
    hosts = {address.host for address in reserved(listeners, bind).addresses[bind]}
    found = socket.getaddrinfo("localhost", 1, type=socket.SOCK_STREAM)
    assert hosts == {sockaddr[0] for *_, sockaddr in found}


def test_unknown_name(listeners: Listeners) -> None:
    """A name that nobody knows is a problem of its bind."""
    assert "name not resolved" in refused(listeners, Bind(host="no-such-host.invalid", port=1))[0]


def test_options(listeners: Listeners) -> None:
    """Accepted sockets have TCP_NODELAY from their listener, which may be bound again after a crash."""
    bind = Bind(host="127.0.0.1", port=free_port())
    (address,) = reserved(listeners, bind).addresses[bind]
    with (
        socket.socket(fileno=os.dup(listeners.fileno(address))) as listener,
        socket.create_connection((bind.host, bind.port)),
        listener.accept()[0] as accepted,
    ):
        assert not os.get_blocking(listener.fileno())
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)


def test_what_stays_is_kept(listeners: Listeners) -> None:
    """A bind that was there keeps its socket; only the new one is fresh; the surplus goes when told."""
    first, second = (Bind(host="127.0.0.1", port=free_port()) for _ in range(2))
    (address,) = reserved(listeners, first).addresses[first]
    descriptor = listeners.fileno(address)
    both = reserved(listeners, first, second)
    assert both.addresses[first] == (address,)
    assert listeners.fileno(address) == descriptor
    assert both.fresh == set(both.addresses[second])
    assert listeners.keep_only(both.addresses[second]) == (address,)
    assert not reaches(first.host, first.port)
    assert reaches(second.host, second.port)


def test_all_or_nothing(listeners: Listeners) -> None:
    """One bind that fails closes those bound for the same request, and all problems are told."""
    good = Bind(host="127.0.0.1", port=free_port())
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        taken = [Bind(host="127.0.0.1", port=each.getsockname()[1]) for each in (one, other)]
        said = refused(listeners, taken[0], good, taken[1])
    assert [re.match(r"[^ ]+: address in use by \S+ \(pid \d+\)$", line) is not None for line in said] == [
        True
    ] * 2
    assert f"(pid {os.getpid()})" in said[0]
    assert list(listeners) == []
    assert not reaches(good.host, good.port)


def accepted_by(listeners: Listeners, host: str, port: int) -> Address:
    """Connect, and return which of our sockets has the connection."""
    with socket.create_connection((host, port), timeout=5):
        found = listeners.at(port)
        ready, _, _ = select.select([each for (each,) in found.values()], [], [], 5)
        ((address, descriptor),) = ((each, one) for each, (one,) in found.items() if one in ready)
        with socket.socket(fileno=os.dup(descriptor)) as listener:
            listener.accept()[0].close()
    return address


@pytest.mark.parametrize("wide", ["0.0.0.0", "::"])
def test_narrowed(listeners: Listeners, wide: str) -> None:
    """A narrower bind beside the wildcard takes nothing before `open`, and its address from then on."""
    port = free_port()
    all_, one = Address(wide, port), Address("127.0.0.1", port)
    reserved(listeners, Bind(host=wide, port=port))
    fresh = reserved(listeners, Bind(host=one.host, port=port)).fresh
    assert fresh == {one}
    assert accepted_by(listeners, "127.0.0.1", port) == all_
    listeners.open(fresh)
    assert accepted_by(listeners, "127.0.0.1", port) == one
    assert accepted_by(listeners, "127.0.0.2", port) == all_
    assert listeners.keep_only(fresh) == (all_,)
    assert reaches("127.0.0.1", port)
    assert not reaches("127.0.0.2", port)


def test_a_narrowing_that_is_given_up(listeners: Listeners) -> None:
    """The wildcard is as it was, and nobody else may bind its port."""
    port = free_port()
    reserved(listeners, Bind(host="::", port=port))
    listeners.release(reserved(listeners, Bind(host="127.0.0.1", port=port)).fresh)
    assert accepted_by(listeners, "127.0.0.1", port) == Address("::", port)
    other = Listeners()
    assert "address in use" in refused(other, Bind(host="127.0.0.1", port=port))[0]


@pytest.mark.parametrize("wide", ["0.0.0.0", "::"])
def test_widened(listeners: Listeners, wide: str) -> None:
    """The narrower socket stays, with whoever is queued in it, and serves the wider bind as well."""
    port = free_port()
    one, bind = Address("127.0.0.1", port), Bind(host=wide, port=port)
    reserved(listeners, Bind(host=one.host, port=port))
    result = reserved(listeners, bind)
    assert set(result.addresses[bind]) == {Address(wide, port), one}
    assert listeners.keep_only(result.addresses[bind]) == ()
    assert accepted_by(listeners, "127.0.0.1", port) == one
    assert accepted_by(listeners, "127.0.0.2", port) == Address(wide, port)
    back = reserved(listeners, Bind(host=one.host, port=port))
    assert back.fresh == frozenset()


@pytest.mark.parametrize(("before", "after"), [("::", "::"), ("::", "127.0.0.1"), ("127.0.0.1", "::")])
def test_moved_from_another_program(listeners: Listeners, before: str, after: str) -> None:
    """The same socket, one beside its wildcard, or a wildcard with it: nothing is closed in between."""
    port = free_port()
    reserved(listeners, Bind(host=before, port=port))

    def lend(wanted: int) -> list[socket.socket]:
        return [socket.socket(fileno=os.dup(each)) for (each,) in listeners.at(wanted).values()]

    taker = Listeners(lend)
    bind = Bind(host=after, port=port)
    result = reserved(taker, bind)
    taker.open(result.fresh)
    listeners.keep_only(())
    assert reaches("127.0.0.1", port)
    assert Address(after, port) in taker
    taker.keep_only(())
    assert not reaches("127.0.0.1", port)


def test_a_move_that_is_given_up(listeners: Listeners) -> None:
    """The lender has what it had."""
    port = free_port()
    reserved(listeners, Bind(host="::", port=port))
    for host in ("::", "127.0.0.1"):
        taker = Listeners(lambda _: [socket.socket(fileno=os.dup(listeners.fileno(Address("::", port))))])
        taker.release(reserved(taker, Bind(host=host, port=port)).fresh)
        assert list(taker) == []
        assert accepted_by(listeners, "127.0.0.1", port) == Address("::", port)


def test_ipv4_wildcard_becomes_dual_stack(listeners: Listeners) -> None:
    """A change from 0.0.0.0 to :: keeps the IPv4 socket and adds one for IPv6."""
    port = free_port()
    narrow, wide = Bind(host="0.0.0.0", port=port), Bind(host="::", port=port)
    reserved(listeners, narrow)
    result = reserved(listeners, wide)
    assert result.addresses[wide] == (Address("::", port), Address("0.0.0.0", port))
    assert listeners.keep_only(result.addresses[wide]) == ()
    assert reserved(listeners, wide).addresses[wide] == result.addresses[wide]
    assert reaches("127.0.0.1", port)
    assert reaches("::1", port)


def test_address_of_another_machine(listeners: Listeners) -> None:
    """An address that no interface has is told as that."""
    assert "no interface has this address" in refused(listeners, Bind(host="192.0.2.1", port=free_port()))[0]


@pytest.mark.parametrize(("host", "other"), [("203.0.113.1", "203.0.113.2"), ("2001:db8::1", "2001:db8::2")])
def test_virtual_address(listeners: Listeners, host: str, other: str) -> None:
    """A virtual address is bound where it is not; any other one that no interface has is an error."""
    ours, absent = (Bind(host=each, port=free_port()) for each in (host, other))
    held = listeners.reserve([ours], virtual={host})
    assert isinstance(held, ReservedBinds), held
    assert held.addresses[ours] == (Address(host, ours.port),)
    problems = listeners.reserve([ours, absent], virtual={host})
    assert isinstance(problems, tuple)
    assert [str(each) for each in problems] == [str(absent) + ": " + problems[0].reason]
    assert "no interface has this address" in problems[0].reason


VIRTUAL = """
import socket, subprocess
from appliance.model.snapshot.frontends import Bind
from appliance.net.listening.listeners import Listeners
listeners, hosts = Listeners(), ("192.0.2.1", "2001:db8::1")
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
print(listeners.reserve([Bind(host=each, port=8001) for each in hosts], virtual=hosts).notes)
for host, prefix in zip(hosts, (32, 128)):
    try:
        socket.create_connection((host, 8001), timeout=5)
    except OSError as error:
        print("not here")
    subprocess.run(["ip", "address", "add", f"{host}/{prefix}", "dev", "lo"], check=True)
    with socket.create_connection((host, 8001), timeout=5) as connection:
        print(connection.getpeername()[0])
"""


@pytest.mark.promise("kernel", "binding an address that is not here yet")
@pytest.mark.programs
@pytest.mark.kernel
def test_virtual_address_that_comes() -> None:
    """What was bound before its address came takes connections from the moment that it is there."""
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", VIRTUAL], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["()", "not here", "192.0.2.1", "not here", "2001:db8::1"], done


def test_take_over(listeners: Listeners) -> None:
    """Received listeners are known by their address; twins and what does not listen are closed."""
    bind = Bind(host="127.0.0.1", port=free_port())
    with socket.create_server((bind.host, bind.port)) as listening, socket.socket() as idle:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            given = array.array("i", [listening.fileno(), listening.fileno(), idle.fileno(), ours.fileno()])
            socket.send_fds(ours, [b"x"], list(given))
            _, received, *_ = socket.recv_fds(theirs, 1, 4)
        assert listeners.take_over(received) == (Address(bind.host, bind.port),)
    assert reaches(bind.host, bind.port)
    assert reserved(listeners, bind).fresh == frozenset()


PRIVILEGED = """
import os
import platform
import gevent.resolver.thread
from appliance.model.snapshot.frontends import Bind
from appliance.net.listening.listeners import Listeners
Listeners().reserve([Bind(host="127.0.0.1", port=1)])  # whatever is imported late is imported now
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(Listeners().reserve([Bind(host="127.0.0.1", port=79)])[0])
"""


@pytest.mark.programs
@pytest.mark.kernel
def test_privileged_port() -> None:
    """An ordinary user reads which capability or setting a low port needs."""
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", PRIVILEGED], capture_output=True, text=True, check=False
    )
    assert "127.0.0.1:79: permission denied: ports below 1024 need CAP_NET_BIND_SERVICE or" in done.stdout
    assert "net.ipv4.ip_unprivileged_port_start" in done.stdout


NO_IPV6 = """
from appliance.model.snapshot.frontends import Bind
from appliance.net.listening.listeners import Listeners
open("/proc/sys/net/ipv6/conf/all/disable_ipv6", "w").write("1")
print(Listeners().reserve([Bind(host="::1", port=8001)])[0])
print(Listeners().reserve([Bind(host="localhost", port=8001)]))
"""


@pytest.mark.programs
@pytest.mark.kernel
def test_ipv6_is_off() -> None:
    """An IPv6 address alone is refused where IPv6 is off."""
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", NO_IPV6], capture_output=True, text=True, check=False
    )
    assert "[::1]:8001: no interface has this address" in done.stdout, done


# seccomp(2): socket(AF_INET6, ...) fails with EAFNOSUPPORT, as on a kernel without IPv6.
NO_KERNEL_IPV6 = """
import ctypes, struct
from appliance.model.snapshot.frontends import Bind
from appliance.net.listening.listeners import Listeners
Listeners().reserve([Bind(host="127.0.0.1", port=1)])
steps = [(0x20, 0, 0, 0), (0x15, 0, 3, 41), (0x20, 0, 0, 16), (0x15, 0, 1, 10), (6, 0, 0, 0x50000 | 97),
         (6, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filters = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(filters)) == 0
listeners = Listeners()
reserved = listeners.reserve([Bind(host="::", port=PORT)])
print(*[str(each) for each in listeners], *[str(note) for note in reserved.notes])
print(listeners.reserve([Bind(host="::1", port=PORT)])[0])
"""


@pytest.mark.programs
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter names system calls by x86_64 numbers")
def test_kernel_without_ipv6() -> None:
    """Where the kernel has no IPv6, :: is IPv4 alone, with a note; an IPv6 address is refused."""
    port = free_port()
    code = NO_KERNEL_IPV6.replace("PORT", str(port))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        f"0.0.0.0:{port} [::]:{port}: no IPv6 here, IPv4 only (Address family not supported by protocol)",
        f"[::1]:{port}: Address family not supported by protocol",
    ], done
