"""docs/getting-started.md, word by word: each command in its order, on the machine that its prompt names."""

from pathlib import Path
from typing import Final

import pytest
from support.documents.pages import yaml_blocks
from support.documents.walks import Step, walk
from support.machines.ssh_between import ssh_between
from support.machines.typed_pair import typed_pair

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "curl", "unshare", "nsenter", "ssh", "sshd", root=True),
]

_PAGE: Final = "getting-started"
_NOT_HERE: Final = {
    "make demo": "tests/programs/console/test_demo.py",
    "make dist": "tests/image/machines/test_dist.py",
    "scp dist/": "tests/image/machines/test_dist.py",
    "PATH=": "tests/image/machines/test_dist.py",
    "tar xf": "tests/image/machines/test_dist.py",
    "lb-appliance-0.2.0/install": "tests/image/machines/test_dist.py",
}
"""Commands that another test gives, and which."""

_HOLDERS: Final = {
    ("", "appliance fleet status --config appliance.yaml"): "lb-0",
    ("lb-0", "systemctl stop appliance"): "lb-1",
    ("lb-0", "systemctl start appliance"): "lb-0",
}
"""Who has the virtual IP after which step."""


def _elsewhere(step: Step) -> bool:
    return step.command.startswith(tuple(_NOT_HERE))


def test_what_is_not_typed_here_is_typed_elsewhere():
    """Only the demo, and the way of the archive and of the command."""
    assert {step.heading for step in walk(_PAGE) if _elsewhere(step)} == {
        "See it run (3 minutes)",
        "Two machines (5 minutes)",
    }
    assert [name for name in _NOT_HERE.values() if not (Path(__file__).parents[3] / name).exists()] == []


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.promise("docs/getting-started.md", "each command of the page does what it says")
def test_the_page(tmp_path: Path):
    """Each command succeeds; the address is where the page says, and a client is served after each step."""
    steps = [step for step in walk(_PAGE) if not _elsewhere(step)]
    with typed_pair(tmp_path) as pair:
        ssh_between(pair, tmp_path)
        pair.machines[""] = pair.machines["client"]  # the reader's own machine
        pair.machines[""].write("appliance.yaml", yaml_blocks(_PAGE)[0])
        for step in steps:
            pair.type(step)
            if holder := _HOLDERS.get((step.machine, step.command)):
                pair.wait_for_holder(holder)
                assert pair.serves()
        for name in ("lb-0", "lb-1"):
            assert "5s" in pair.machines[name].read("/etc/appliance/appliance.yaml")
    assert len(steps) > 10
