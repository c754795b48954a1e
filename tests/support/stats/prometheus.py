"""A real Prometheus, as Debian packages it: scrapes, evaluates rules, and answers queries."""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml
from support.network.ports import free_port
from support.processes.waiting import wait_until
from support.run import tools

JOB = "appliance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """One that runs; `port` is its API's."""

    port: int

    def query(self, expression: str) -> list[dict[str, object]]:
        """Return the samples of an instant query; raises OSError for one that is refused."""
        found: list[dict[str, object]] = self._get("query", query=expression)["result"]
        return found

    def targets(self) -> list[dict[str, object]]:
        """Return what it scrapes, with the errors."""
        found: list[dict[str, object]] = self._get("targets")["activeTargets"]
        return found

    def alerts(self) -> set[str]:
        """Return the names of the alerts that fire or are about to."""
        return {each["labels"]["alertname"] for each in self._get("alerts")["alerts"]}

    def _get(self, what: str, **values: str) -> dict[str, list]:  # type: ignore[type-arg]  # as JSON has it
        with urlopen(f"http://127.0.0.1:{self.port}/api/v1/{what}?{urlencode(values)}", timeout=30) as answer:
            data: dict[str, list] = json.load(answer)["data"]  # type: ignore[type-arg]  # as JSON has it
            return data


@contextlib.contextmanager
def prometheus(directory: Path, targets: Sequence[str], *, rules: Path) -> Iterator[Prometheus]:
    """Run one that scrapes `targets` every second, until it has scraped all of them."""
    program = tools.path("prometheus")
    assert program is not None
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": list(targets)}]}],
    }
    file = directory / "prometheus.yml"
    file.write_text(yaml.safe_dump(settings))
    made = Prometheus(port=free_port())
    command = [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{made.port}",
    ]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: _scraped(made), what="all is scraped", timeout=60.0)
        yield made
    finally:
        process.terminate()
        process.wait(timeout=30)


def _scraped(made: Prometheus) -> bool:
    try:
        return all(each["health"] == "up" for each in made.targets() or [{"health": "none"}])
    except OSError:
        return False
