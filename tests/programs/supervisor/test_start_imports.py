"""What programs do not import at their start, because clients wait for them."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.programs

_PROGRAMS = (
    "supervisor",
    "reload",
    "health",
    "proxy",
    "redirect",
    "forward",
    "linger",
    "worker",
    "vrrp",
    "tracker",
    "stats",
)


def _imported(module: str) -> set[str]:
    script = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("program", _PROGRAMS)
def test_no_program_draws_tables_or_validates(program: str):
    """No program imports the library for tables, nor the validator of configurations."""
    assert not _imported(f"appliance.programs.{program}") & {"rich", "pydantic"}


def test_run_needs_no_network():
    """`appliance run` imports neither netlink nor the event loop before it knows that it needs them."""
    assert not _imported("appliance.console.run") & {"rich", "pyroute2", "gevent"}


def test_messages_of_netlink_bring_nothing_but_messages():
    """What speaks netlink imports neither the database of pyroute2 nor its sockets."""
    script = "import sys, appliance.net.netlink.links; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pyroute2.netlink.rtnl" in loaded
    assert not loaded & {"pyroute2", "pyroute2.ndb.main", "pyroute2.iproute.linux"}


@pytest.mark.parametrize("first", ["messages", "package"])
def test_the_rest_of_pyroute2_is_there_for_who_needs_it(first: str):
    """Whichever is imported first, the package is whole, and its messages are the same classes."""
    messages = "from appliance.net.netlink.netlink_messages import nlmsg as one"
    package = "import pyroute2; pyroute2.IPRoute; from pyroute2.netlink import nlmsg as other"
    order = [messages, package] if first == "messages" else [package, messages]
    script = "; ".join([*order, "import sys", "print(one is other, sys.modules['pyroute2'] is pyroute2)"])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"
