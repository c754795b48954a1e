"""The sequences of docs/operating.md, word by word, on one pair, in the order of the page."""

from pathlib import Path
from typing import Final

import pytest
from support.documents.pages import yaml_blocks
from support.documents.walks import walk
from support.machines.ssh_between import ssh_between
from support.machines.typed_pair import typed_pair
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "curl", "unshare", "nsenter", "openssl", "ssh", "sshd", root=True),
    pytest.mark.slow("whole appliances on a segment of their own"),
]

_PAGE: Final = "operating"
_NOT_HERE: Final = "lb-appliance-0.2.0/install"
"""tests/image/machines/test_dist.py gives it."""


@pytest.mark.promise("docs/operating.md", "each sequence of commands does what it says")
def test_the_sequences(tmp_path: Path):
    """Each command succeeds, a client is served after each sequence, and `lb-0` has the address again."""
    steps = [step for step in walk(_PAGE) if step.machine and not step.command.startswith(_NOT_HERE)]
    headings = list(dict.fromkeys(step.heading for step in steps))
    with typed_pair(tmp_path) as pair:
        ssh_between(pair, tmp_path)
        pair.configure(yaml_blocks(_PAGE)[0])
        for heading in headings:
            for step in (each for each in steps if each.heading == heading):
                pair.type(step)
            pair.wait_for_holder("lb-0")
            wait_until(pair.serves, what=f"a client is served after: {heading}", timeout=60.0)
        for name in ("lb-0", "lb-1"):
            text = pair.machines[name].read("/etc/appliance/appliance.yaml")
            assert "send: 2" in text
            assert "vrrp-1.key" not in text
            assert "10.0.0.14:6443" in text
    assert headings[1:] == [
        "Drain a server",
        "Take a machine out",
        "Upgrade the appliance",
        "Replace a machine",
        "Change a server's address",
        "Change a virtual IP",
        "Rotate secrets",
        "Back it up",
    ]
