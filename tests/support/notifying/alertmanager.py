"""A real Alertmanager, without its cluster port, asked by its own API."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.network.ports import accepts, free_port
from support.processes.waiting import wait_until

_CONFIG = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"


@contextmanager
def alertmanager(root: Path) -> Iterator[str]:
    """Run one, and give the URL of its alerts."""
    port = free_port()
    (root / "alertmanager.yml").write_text(_CONFIG)
    process = subprocess.Popen(
        [
            "prometheus-alertmanager",
            f"--config.file={root / 'alertmanager.yml'}",
            f"--storage.path={root / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: accepts(port), what="Alertmanager listens", timeout=60.0)
        yield f"http://127.0.0.1:{port}/api/v2/alerts"
    finally:
        process.terminate()
        process.wait(30)


def firing(url: str) -> list[dict[str, dict[str, str]]]:
    """Return the alerts that it holds for active."""
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310  # our own URL
        found: list[dict[str, dict[str, str]]] = json.load(answer)
    return found
