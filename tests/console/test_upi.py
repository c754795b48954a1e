"""docs/upi.md: its commands, on the sample haproxy.cfg of OpenShift's documentation."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.documents.pages import ROOT, blocks

pytestmark = pytest.mark.programs

_PAGE: Final = ROOT / "docs" / "upi.md"
_SAMPLE: Final = ROOT / "tests" / "translation" / "corpus" / "haproxy" / "openshift-upi-sample.cfg"
_ELSEWHERE: Final = ("systemctl ", "appliance status", "appliance maint ", "appliance reload")
"""Commands about what runs: tests/kernel/console types them for other pages."""


@pytest.mark.promise("docs/upi.md", "the sample becomes a configuration that is checked")
def test_its_commands_on_the_sample(tmp_path: Path):
    """Each exits with 0, the figures are those that it reports, and no one but the nodes reaches 22623."""
    cfg, made = tmp_path / "haproxy.cfg", tmp_path / "appliance.yaml"
    cfg.write_bytes(_SAMPLE.read_bytes())
    said, commands = "", [line[2:] for block in blocks(_PAGE, "console") for line in block.text.splitlines()]
    for each in commands:
        if each.startswith(_ELSEWHERE):
            continue
        here = each.replace("/etc/haproxy/haproxy.cfg", str(cfg)).replace(
            "/etc/appliance/appliance.yaml", str(made)
        )
        words = shlex.split(here)
        if words[0] == "appliance":
            words[:1] = [sys.executable, "-m", "appliance.console"]
        environment = {**os.environ, "APPLIANCE_CONFIG": str(made)}
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{each}: {done.stdout}{done.stderr}"
        said += done.stdout + done.stderr
    kept, ignored, changed = re.search(  # type: ignore[union-attr]  # it is there, or the test fails
        r"(\d+) lines are \*kept\*, (\d+) \*ignored\*.*?and (\d+) \*changed\*", _PAGE.read_text(), re.DOTALL
    ).groups()
    assert f"{kept} kept, {changed} changed, {ignored} ignored, 0 refused" in said
    found = yaml.safe_load(made.read_text())
    assert found["api"]["frontends"]["machine-config"]["allow"] == ["192.0.2.0/24"]
    assert "boot" not in found["pools"]["api"]["servers"]
    assert said.count("ok\n") == 1
    names = re.findall(r"appliance maint ([a-z-]+)/boot", _PAGE.read_text())
    assert set(names) == {"api", "machine-config"}
