"""Directories for files of ours."""

from pathlib import Path

import pytest

from appliance.model.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Give a runtime and a state directory."""
    made = Paths(config=tmp_path / "c.yaml", runtime=tmp_path / "run", state=tmp_path / "state")
    made.runtime.mkdir()
    made.state.mkdir()
    return made
