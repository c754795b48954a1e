"""The pages of `stats` asked without a network, where nothing of the appliance runs."""

from pathlib import Path

import structlog

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Stats
from appliance.stats.access import web_access
from appliance.stats.changes import Changes
from appliance.stats.figures import HistoryFile, LatestFigures
from appliance.stats.pages import Pages


def asked(tmp_path: Path, target: str, stats: Stats, *, method: str = "GET") -> tuple[int, str, str]:
    """Return the status, the type and the body of an answer."""
    log = structlog.get_logger()
    paths = Paths(runtime=tmp_path, state=tmp_path, config=tmp_path / "a.yaml")
    figures = LatestFigures(paths, HistoryFile(paths.history, log), on_fault=log.error)
    access = web_access(stats)
    changes = Changes(paths, figures, log)
    pages = Pages(figures, lambda: access, lambda: stats, changes, on_denied=log.warning)
    path, _, query = target.partition("?")
    answered: list[tuple[str, list[tuple[str, str]]]] = []
    try:
        body = pages(
            {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query},
            lambda status, headers: answered.append((status, headers)),
        )
    finally:
        figures.close()
    [(status, headers)] = answered
    return int(status.split()[0]), dict(headers)["Content-Type"], b"".join(body).decode()
