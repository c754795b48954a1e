"""Rules in the network of this test process, also with kernels that know less than this one."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from structlog.testing import CapturingLogger
from support.values.snapshots import frontend, group, redirect, snapshot

from appliance.core.redirect.rules import FLOWS_TABLE, TABLE, Redirection, redirections
from appliance.core.redirect.switch import switches
from appliance.model.snapshot.frontends import Bind
from appliance.net.nftables.nftables import Nftables, NftablesError
from appliance.redirect.kernel_rules import KernelRules
from appliance.wire.nftables.nftables_answer import ANSWER_LIMIT, NftablesObject
from appliance.wire.nftables.nftables_commands import Family

pytestmark = [pytest.mark.kernel, pytest.mark.needs("nft", root=True)]

_BINDS: Final = (Bind(host="::", port=9445),)


def _wanted(*hosts: str) -> tuple[Redirection, ...]:
    given = redirect(sources=tuple(Bind(host=each, port=6443) for each in hosts))
    made = snapshot(groups=[group("api", frontends=[frontend("k", redirect=given, binds=_BINDS)])])
    return tuple(redirections(switches(made)[0]))


def _nft(*arguments: str) -> str:
    return subprocess.run(["nft", *arguments], check=True, capture_output=True, text=True).stdout


class _OlderKernel(Nftables):
    """A kernel before 5.12, which knows no owners, or without the module for sockets."""

    owners = False
    sockets = False

    def own_tables(self, families: object, table: str) -> None:
        """Refuse, as that kernel does."""
        if not self.owners:
            raise NftablesError("Could not process rule: Operation not supported")
        super().own_tables(families, table)  # type: ignore[arg-type]  # passed on as it came

    def run(self, script: str, *, limit: int = ANSWER_LIMIT) -> tuple[NftablesObject, ...]:
        """Refuse rules with the question for sockets."""
        if not self.sockets and " socket " in script:
            raise NftablesError("Could not process rule: No such file or directory")
        return super().run(script, limit=limit)


@pytest.fixture
def log() -> Iterator[CapturingLogger]:
    """What is logged; the network is empty before and after."""
    _nft("flush", "ruleset")
    yield CapturingLogger()
    _nft("flush", "ruleset")


def _rules(log: CapturingLogger, connect: Callable[[], Nftables] = Nftables) -> KernelRules:
    return KernelRules(log, connect=connect)  # type: ignore[arg-type]  # it has the same methods


def _events(log: CapturingLogger) -> list[str]:
    return [str(each.args[0]) for each in log.calls]


def test_nothing_is_done_twice(log: CapturingLogger):
    """The same again costs no transaction; what somebody removed is put back, and told as done."""
    rules, wanted = _rules(log), _wanted("10.0.0.200", "fd00::200")
    assert rules.install(Family, wanted)
    assert not rules.install(Family, wanted)
    assert "owner" in _nft("list", "ruleset")
    _nft("flush", "ruleset")
    assert rules.install(Family, wanted)
    assert rules.install(Family, ())
    assert "dport" not in _nft("list", "ruleset")
    rules.close(keep_flows=False)
    assert _nft("list", "ruleset") == ""
    assert log.calls == []


def test_the_next_run_knows_what_was_on(log: CapturingLogger):
    """A process that dies leaves that and nothing else."""
    rules = _rules(log)
    assert rules.were_on() == frozenset()
    rules.install([Family.IPV4], _wanted("10.0.0.200"))
    rules.close(keep_flows=True)
    assert _nft("list", "tables").split() == ["table", "ip", FLOWS_TABLE]
    second = _rules(log)
    assert second.were_on() == {"api/k"}
    second.install([Family.IPV4], ())
    assert second.were_on() == frozenset()
    second.close(keep_flows=False)
    assert _nft("list", "ruleset") == ""


def test_a_family_that_is_not_used_any_more_is_emptied(log: CapturingLogger):
    """A reload from both families to one leaves no rule of the other."""
    rules = _rules(log)
    rules.install(Family, _wanted("10.0.0.200", "fd00::200"))
    rules.install([Family.IPV4], _wanted("10.0.0.200"))
    assert "dport" not in _nft("list", "table", "ip6", TABLE)
    assert "dport" in _nft("list", "table", "ip", TABLE)
    rules.close(keep_flows=False)


def test_an_older_kernel(log: CapturingLogger):
    """Tables like any other, and monitor's rules as they are; each said once, and a stop still cleans."""
    rules, wanted = _rules(log, _OlderKernel), _wanted("10.0.0.200")
    assert rules.install([Family.IPV4], wanted)
    assert not rules.install([Family.IPV4], wanted)
    assert rules.install([Family.IPV4], ())
    assert rules.install([Family.IPV4], wanted)
    assert (rules.owned, rules.guarded) == (False, False)
    shown = _nft("list", "table", "ip", TABLE)
    assert "dnat to 10.0.0.200:9445" in shown
    assert "owner" not in shown
    assert "socket" not in shown
    assert _events(log) == ["redirect-not-owned", "redirect-not-guarded"]
    rules.close(keep_flows=False)
    assert _nft("list", "ruleset") == ""


def test_an_older_kernel_s_leftovers(log: CapturingLogger):
    """What it could not remove after a kill is replaced by the next run, and what was flushed put back."""
    killed = _rules(log, _OlderKernel)
    killed.install([Family.IPV4], _wanted("10.0.0.200"))
    rules = _rules(log, _OlderKernel)
    rules.install([Family.IPV4], _wanted("10.0.0.201"))
    assert "10.0.0.200" not in _nft("list", "ruleset")
    _nft("flush", "ruleset")
    assert rules.install([Family.IPV4], _wanted("10.0.0.201"))
    assert "10.0.0.201" in _nft("list", "ruleset")
    rules.close(keep_flows=False)


def test_another_reason_is_no_older_kernel(log: CapturingLogger):
    """Where the kernel refuses both forms the second reason is the error, and the next try asks again."""

    class Refusing(_OlderKernel):
        owners = True

        def run(self, script: str, *, limit: int = ANSWER_LIMIT) -> tuple[NftablesObject, ...]:
            if "dnat" in script:
                raise NftablesError("Could not process rule: Operation not supported")
            return super().run(script, limit=limit)

    rules = _rules(log, Refusing)
    with pytest.raises(NftablesError, match="not supported"):
        rules.install([Family.IPV4], _wanted("10.0.0.200"))
    assert (rules.owned, rules.guarded, rules.installed) == (True, True, None)
    rules.close(keep_flows=False)


def test_without_the_library_every_try_says_so(log: CapturingLogger):
    """It can be installed while the program runs."""

    def absent() -> Nftables:
        return Nftables(library="libnothing.so.1")

    rules = _rules(log, absent)
    for _ in range(2):
        with pytest.raises(NftablesError, match="libnftables1"):
            rules.install(Family, ())
    rules.close(keep_flows=False)
