"""The unit for a machine without a container: as hardened as that of the virtual machine, and good."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from appliance.net.files.packaged import packaged
from appliance.net.privileges import capabilities

_ROOT: Final = Path(__file__).parents[2]
_OURS: Final = packaged("appliance.service")
_MACHINE_S: Final = _ROOT / "image/vm/etc/systemd/system/appliance.service"
_SETS: Final = ("AmbientCapabilities", "CapabilityBoundingSet")


def _service(path: Path) -> dict[str, str]:
    section = path.read_text().partition("[Service]")[2].partition("[Install]")[0]
    return dict(re.findall(r"^(\w+)=(.*)$", section, re.MULTILINE))


@pytest.mark.pure
def test_the_two_units_are_the_same():
    """What hardens the one hardens the other; only what is given differs."""
    ours, machine_s = (
        {key: value for key, value in _service(path).items() if key not in _SETS}
        for path in (_OURS, _MACHINE_S)
    )
    assert ours == machine_s


@pytest.mark.pure
def test_it_gives_what_the_programs_use():
    """All that they use and nothing else, in both sets."""
    service = _service(_OURS)
    for key in _SETS:
        assert set(service[key].split()) == {each.name for each in capabilities.EVERYTHING}


@pytest.mark.programs
@pytest.mark.needs("systemd-analyze")
def test_systemd_knows_every_line(tmp_path: Path):
    """Nothing is found to be wrong with it, and its figure for exposure stays low."""
    unit = tmp_path / "appliance.service"
    command = tmp_path / "appliance"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    unit.write_text(_OURS.read_text().replace("/usr/local/bin/appliance", str(command)))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert [line for line in verified.stderr.splitlines() if "appliance.service" in line] == []
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", unit], capture_output=True, text=True, check=True
    )
    figure = re.search(r"Overall exposure level for appliance.service: ([0-9.]+)", judged.stdout)
    assert figure is not None
    assert float(figure[1]) <= 3.0
