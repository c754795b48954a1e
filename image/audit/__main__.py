"""`python -m image.audit PIP_AUDIT LOCK...`: known vulnerabilities of what is locked.

PIP_AUDIT is the program of that name, which asks a database of advisories on the network. What it could not
ask about is named as not audited: pip-audit itself ends with 0 then.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

_PATIENCE = 600.0  # seconds for one lock


def main(arguments: Sequence[str]) -> int:
    """Audit each lock; returns 1 for a vulnerability, 2 where something could not be audited, else 0."""
    program, *locks = arguments
    worst = 0
    for lock in locks:
        status, lines = judged(lock, _answer(program, lock))
        sys.stdout.write("".join(f"audit: {line}\n" for line in lines))
        worst = 1 if 1 in (status, worst) else max(status, worst)
    return worst


def _answer(program: str, lock: str) -> str:
    options = [
        "--format",
        "json",
        "--progress-spinner",
        "off",
        "--disable-pip",
        "--no-deps",
        "--require-hashes",
    ]
    try:
        done = subprocess.run(  # noqa: S603  # by argument list
            [program, *options, "--requirement", lock],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_PATIENCE:g} s"
    return done.stdout or done.stderr[-300:]


def judged(lock: str, answer: str) -> tuple[int, list[str]]:
    """Return the status of a lock and the lines about it."""
    try:
        found = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return 2, [f"NOT AUDITED: {lock}: {answer.strip()}"]
    left_out = [each for each in found if "skip_reason" in each]
    bad = [_named(each, one) for each in found for one in each.get("vulns", ())]
    lines = [f"{lock}: {each}" for each in bad]
    if left_out:
        lines.append(
            f"NOT AUDITED: {lock}: {len(left_out)} of {len(found)} packages: {left_out[0]['skip_reason']}"
        )
    if not lines:
        lines = [f"{lock}: {len(found)} packages, no known vulnerability"]
    return 1 if bad else 2 if left_out else 0, lines


def _named(package: Mapping[str, Any], advisory: Mapping[str, Any]) -> str:
    fixed = ", ".join(advisory.get("fix_versions", ())) or "no version"
    return f"{package['name']} {package['version']}: {advisory['id']}, fixed in {fixed}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
