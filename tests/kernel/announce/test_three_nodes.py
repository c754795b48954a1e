"""docs/three-nodes.md, word by word: each command in its order, on the machine that its prompt names."""

from pathlib import Path
from typing import Final

import pytest
from support.documents.pages import DOCS, yaml_blocks
from support.documents.walks import walk
from support.machines.typed_three import NODES, typed_three

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", "bird", "vtysh", "curl", "unshare", "nsenter", root=True),
    pytest.mark.slow("three whole appliances and a router"),
]

_PAGE: Final = "three-nodes"
_ALL: Final = tuple(NODES)
_SERVE: Final = {
    ("lb-2", "systemctl enable --now appliance"): _ALL,
    ("lb-1", "appliance leave"): ("lb-0", "lb-2"),
    ("lb-1", "appliance reload"): _ALL,
    ("lb-2", "systemctl stop appliance"): ("lb-0", "lb-1"),
    ("lb-2", "systemctl start appliance"): _ALL,
}
"""Whom the router has after which step."""


@pytest.mark.promise("docs/three-nodes.md", "each command of the page does what it says")
def test_the_page(tmp_path: Path):
    """Each command succeeds, a client is served, and the router has the nodes that the page says."""
    steps = list(walk(_PAGE))
    frr = (DOCS / "shared-ips.md").read_text().partition("FRR as the router:\n\n```\n")[2].partition("```")[0]
    with typed_three(tmp_path, frr) as three:
        three.configure(yaml_blocks(_PAGE)[0])
        for step in steps:
            three.type(step)
            if names := _SERVE.get((step.machine, step.command)):
                three.wait_for_hops(*names)
    assert {step.machine for step in steps} == {*NODES, "router", "client"}
    assert len(steps) > 25
