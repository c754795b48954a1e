"""What holds for a frontend whoever moves its bytes: a proxy, or the kernel in both versions of IP."""

import pytest
from support.forward.forward_field import ForwardField, state
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
    pytest.mark.parametrize(("forward", "version"), [("proxy", 4), ("kernel", 4), ("kernel", 6)]),
    pytest.mark.slow("whole appliances on a segment of their own"),
]

ALL = ("s1", "s2", "s3")


@pytest.fixture(autouse=True)
def _version(balanced: ForwardField, version: int) -> None:
    balanced.version = version


def test_a_dead_server_gets_nothing_more(balanced: ForwardField, forward: str):
    """After its checks have failed nobody is sent there; back again it has its share."""
    with balanced.appliance(balanced.config(forward=forward)) as appliance:
        balanced.wait_for(*ALL)
        balanced.stop_server("s2")
        balanced.wait_for("s1", "s3")
        assert set(balanced.shares(20)) == {"s1", "s3"}
        balanced.start_server("s2")
        balanced.wait_for(*ALL)
        wait_until(lambda: appliance.status()["ok"], what="all is well")


@pytest.mark.promise("docs/forward.md", "drain holds as with a proxy")
def test_a_drained_server_keeps_its_sessions(balanced: ForwardField, forward: str):
    """`drain` sends nobody new, and what is open goes on; `ready` ends it."""
    with balanced.appliance(balanced.config(forward=forward)) as appliance:
        balanced.wait_for(*ALL)
        sessions = [balanced.session() for _ in range(6)]
        appliance.command("drain", "servers/s1")
        balanced.wait_for("s2", "s3")
        assert [each.asks() for each in sessions] == [each.server for each in sessions]
        assert {each.server for each in sessions} == set(ALL)
        appliance.command("ready", "servers/s1")
        balanced.wait_for(*ALL)
        for each in sessions:
            each.close()


def test_weights_are_shares(balanced: ForwardField, forward: str):
    """Of ten connections the server of weight 8 gets eight; a reload of weights holds at once."""
    config = balanced.config(forward=forward, pool={"servers": balanced.members(s1={"weight": 8})})
    with balanced.appliance(config) as appliance:
        balanced.wait_for(*ALL)
        shares = balanced.shares(100)
        assert 70 <= shares["s1"] <= 90, shares
        flat = balanced.config(forward=forward, pool={"servers": balanced.members(s2={"weight": 0})})
        assert appliance.reload(flat)["ok"]
        balanced.wait_for("s1", "s3")
        assert set(balanced.shares(20)) == {"s1", "s3"}


def test_a_server_that_comes_back_starts_slowly(balanced: ForwardField, forward: str):
    """In the first part of a long slow start it has few of the connections, but has some."""
    config = balanced.config(forward=forward, pool={"slow_start": "600s"})
    with balanced.appliance(config) as appliance:
        balanced.wait_for(*ALL)
        balanced.stop_server("s2")
        wait_until(lambda: state(appliance, "s2") == "down", what="s2 is down")
        balanced.wait_for("s1", "s3")
        balanced.start_server("s2")
        wait_until(lambda: "s2" in balanced.shares(30), what="s2 has connections", timeout=60.0)
        shares = balanced.shares(100)
        assert shares["s2"] < 15, shares


def test_a_client_stays_at_its_server(balanced: ForwardField, forward: str):
    """`balance: source`: always the same, another one while that is down, and then the same again."""
    with balanced.appliance(balanced.config(forward=forward, pool={"balance": "source"})) as appliance:
        wait_until(lambda: [state(appliance, each) for each in ALL] == ["up"] * 3, what="all are up")
        wait_until(lambda: balanced.ask() in ALL, what="somebody serves")
        (first,) = balanced.shares(10)
        balanced.stop_server(first)
        wait_until(lambda: balanced.ask() in ALL and balanced.ask() != first, what="another one serves")
        assert len(balanced.shares(10)) == 1
        balanced.start_server(first)
        wait_until(lambda: balanced.ask() == first, what="the first one serves again")


def test_who_may_connect(balanced: ForwardField, forward: str):
    """Networks that are denied, or not allowed, get nothing; the counter says how many."""
    mine = balanced.client.address if balanced.version == 4 else balanced.client.address6
    other = "198.51.100.0/24" if balanced.version == 4 else "2001:db8:1::/48"
    denied = balanced.config(forward=forward, deny=[mine])
    with balanced.appliance(denied) as appliance:
        wait_until(lambda: balanced.ask(node=balanced.balancer) in ALL, what="others are served")
        assert balanced.ask().startswith("!")
        wait_until(lambda: appliance.status()["frontends"][0]["denied"] >= 1, what="it is counted")
        assert appliance.reload(balanced.config(forward=forward, allow=[other, mine]))["ok"]
        wait_until(lambda: balanced.ask() in ALL, what="the allowed are served")
        assert appliance.reload(balanced.config(forward=forward, allow=[other]))["ok"]
        wait_until(lambda: balanced.ask().startswith("!"), what="others are not")


def test_connections_have_a_limit(balanced: ForwardField, forward: str):
    """Above max_connections new ones wait; when one ends, the next is served."""
    with balanced.appliance(balanced.config(forward=forward, max_connections=4)) as appliance:
        balanced.wait_for(*ALL)
        wait_until(lambda: appliance.status()["frontends"][0]["current"] == 0, what="nothing is open")  # type: ignore[index]  # JSON
        held = [balanced.session() for _ in range(4)]
        assert balanced.ask(timeout=0.5) == "!TimeoutError"
        held.pop().close()
        wait_until(lambda: balanced.ask(timeout=2.0) in ALL, what="the next is served", timeout=30.0)
        for each in held:
            each.close()


def test_without_any_server_connections_end_at_once(balanced: ForwardField, forward: str):
    """Nobody waits for a timeout, and the status names the pool."""
    with balanced.appliance(balanced.config(forward=forward)) as appliance:
        balanced.wait_for(*ALL)
        for each in ALL:
            balanced.stop_server(each)
        wait_until(
            lambda: "pool servers has no server up" in str(appliance.status()["problems"]), what="down"
        )
        wait_until(
            lambda: balanced.ask() in ("!ConnectionRefusedError", "!ConnectionResetError", "!lost"),
            what="refused",
        )


def test_sessions_of_a_lost_server_end(balanced: ForwardField, forward: str):
    """`on_down: close-sessions`: clients learn it at once, also those that say nothing; others go on."""
    pool = {"on_down": "close-sessions", "servers": balanced.members()}
    with balanced.appliance(balanced.config(forward=forward, pool=pool)) as appliance:
        balanced.wait_for(*ALL)
        sessions = [balanced.session() for _ in range(6)]
        appliance.command("maint", "servers/s1")
        lost = [each for each in sessions if each.server == "s1"]
        kept = [each for each in sessions if each.server != "s1"]
        assert lost
        assert {each.ends() for each in lost} <= {"reset", "closed"}
        assert [each.asks() for each in kept] == [each.server for each in kept]
        for each in sessions:
            each.close()
