"""`make audit`: a vulnerability fails it, and what could not be asked about is never passed in silence."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents.pages import ROOT

from image.audit.__main__ import judged

pytestmark = pytest.mark.programs

_GOOD = {"name": "click", "version": "8.1.0", "vulns": []}
_BAD = {
    "name": "jinja2",
    "version": "3.1.0",
    "vulns": [
        {"id": "PYSEC-1", "fix_versions": ["3.1.3"], "aliases": ["CVE-2024-1"]},
        {"id": "PYSEC-2", "fix_versions": []},
    ],
}
_LEFT_OUT = {"name": "gevent", "skip_reason": "Dependency not found on PyPI and could not be audited"}


@pytest.mark.parametrize(
    ("packages", "status", "lines"),
    [
        ([_GOOD], 0, ["a.lock: 1 packages, no known vulnerability"]),
        (
            [_GOOD, _BAD],
            1,
            [
                "a.lock: jinja2 3.1.0: PYSEC-1, fixed in 3.1.3",
                "a.lock: jinja2 3.1.0: PYSEC-2, fixed in no version",
            ],
        ),
        (
            [_GOOD, _LEFT_OUT],
            2,
            ["NOT AUDITED: a.lock: 1 of 2 packages: Dependency not found on PyPI and could not be audited"],
        ),
    ],
)
def test_an_answer_is_judged(packages: list[object], status: int, lines: list[str]):
    """None, some, and some that were left out, which pip-audit itself calls a success."""
    assert judged("a.lock", json.dumps({"dependencies": packages, "fixes": []})) == (status, lines)


@pytest.mark.parametrize("answer", ["", "Connection refused", "[]", "{}"])
def test_no_answer_is_no_success(answer: str):
    """Without a network its words are shown."""
    assert judged("a.lock", answer) == (2, [f"NOT AUDITED: a.lock: {answer}"])


def test_a_vulnerability_counts_more_than_what_was_left_out(tmp_path: Path):
    """Whatever the order of the locks; the program is asked once for each."""
    program = tmp_path / "pip-audit"
    answers = {"a": [_BAD], "b": [_LEFT_OUT], "c": [_GOOD]}
    for name, packages in answers.items():
        (tmp_path / name).write_text(json.dumps({"dependencies": packages}))
    program.write_text('#!/bin/sh\nfor last; do :; done\ncat "$last"\n')
    program.chmod(0o755)

    def status(*names: str) -> int:
        command = [
            sys.executable,
            "-m",
            "image.audit",
            str(program),
            *(str(tmp_path / each) for each in names),
        ]
        return subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode

    assert [status(*names) for names in ("abc", "cba", "cb", "bc", "c")] == [1, 1, 2, 2, 0]
