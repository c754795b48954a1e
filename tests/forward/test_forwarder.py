"""The forwarder with a kernel of the test's own: what it writes, and what it does where that refuses."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from support.values import snapshots
from support.values.snapshots import frontend, group, pool, server

from appliance.forward import forwarder as module
from appliance.forward.forwarder import Forwarder
from appliance.forward.kernel_tables import KernelTables
from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind, Forward
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.logging import log as logs
from appliance.net.nftables.nftables import Nftables, NftablesError
from appliance.wire.nftables.nftables_answer import NftablesObject

pytestmark = pytest.mark.programs

BOTH = pool(servers=[server("a", host="192.0.2.1"), server("b", host="2001:db8::1")])


class Kernel:
    """nftables that notes what is written, and lists nothing; scripts with `refused` in them it refuses."""

    def __init__(self) -> None:
        self.scripts: list[str] = []
        self.refused = "nothing"

    def run(self, *_: object) -> tuple[NftablesObject, ...]:
        """List what is not there."""
        raise NftablesError("No such file or directory")

    def run_text(self, script: str) -> None:
        """Take a script, or refuse it."""
        if self.refused in script:
            raise NftablesError("File exists")
        self.scripts.append(script)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Directories of the test."""
    return Paths(runtime=tmp_path, state=tmp_path)


@pytest.fixture
def kernel() -> Kernel:
    """One that refuses nothing."""
    return Kernel()


@pytest.fixture
def forwarder(paths: Paths, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forwarder]:
    """One that has applied nothing yet, on a machine that forwards packets."""
    monkeypatch.setattr(module, "objections", lambda _: ())
    tables = KernelTables(connect=lambda: cast("Nftables", kernel))
    made = Forwarder(paths, logs.obey("forward", one().log), tables, on_fault=print)
    with closing(made):
        yield made


def one() -> Snapshot:
    """Return a snapshot with one frontend that the kernel forwards in both families."""
    binds = [Bind(host="::", port=80)]
    given = frontend("main", forward=Forward.KERNEL, binds=binds)
    return snapshots.snapshot(groups=[group("api", frontends=[given])], pools=[BOTH])


def test_a_family_that_is_refused_stops_no_other(forwarder: Forwarder, kernel: Kernel):
    """IPv6's rules are written though IPv4's are not, and the trouble is told."""
    kernel.refused = "ip lb_forward"
    forwarder.apply(one())

    assert forwarder.trouble == "File exists"
    assert ["ip6 lb_forward" in each for each in kernel.scripts] == [True]
