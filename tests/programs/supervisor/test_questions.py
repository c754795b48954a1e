"""What supervisord does at its socket: everything but to change which programs there are."""

import pytest
from supervisor.xmlrpc import Faults, RootRPCInterface, RPCError, SystemNamespaceRPCInterface, traverse

from appliance.supervisor.accepted_commands import make

pytestmark = pytest.mark.pure


def _root() -> RootRPCInterface:
    ours = make(None)
    return RootRPCInterface(
        [("supervisor", ours), ("system", SystemNamespaceRPCInterface([("supervisor", ours)]))]
    )


@pytest.mark.promise("rights", "supervisord's socket")
@pytest.mark.parametrize(
    ("method", "parameters"),
    [("reloadConfig", []), ("addProcessGroup", ["x"]), ("removeProcessGroup", ["vrrp"])],
)
def test_nobody_adds_or_changes_programs(method: str, parameters: list[str]):
    """Neither by its name, nor among others in one call; nor is it shown."""
    with pytest.raises(RPCError) as refused:
        traverse(_root(), f"supervisor.{method}", parameters)
    assert refused.value.code == Faults.UNKNOWN_METHOD
    several = [{"methodName": f"supervisor.{method}", "params": parameters}]
    (answer,) = traverse(_root(), "system.multicall", [several])
    assert answer["faultCode"] == Faults.UNKNOWN_METHOD
    assert f"supervisor.{method}" not in traverse(_root(), "system.listMethods", [])


def test_it_still_starts_and_stops():
    """What `supervisorctl` and the program `reload` ask."""
    shown = traverse(_root(), "system.listMethods", [])
    wanted = ("startProcess", "stopProcess", "getAllProcessInfo", "getState", "signalProcess", "restart")
    assert {f"supervisor.{each}" for each in wanted} <= set(shown)
