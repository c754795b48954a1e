"""Monitoring agents that read HAProxy, as far as they read it: requests, expressions, columns.

Each is written after what the real one does, and fails as the real one would.
"""

import csv
import re
import socket
import urllib.request
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

Row = Mapping[str, str]


def get(url: str, *, user: str = "", accept: str = "") -> tuple[str, str]:
    """Return the content type and the body of a page; `user` is `name:password`."""
    headers = {"Accept": accept} if accept else {}
    if user:
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  # http, of the test itself
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # the same
        return answer.headers["Content-Type"], answer.read().decode()


def socket_answer(path: Path, question: str) -> str:
    """Return what a stats socket answers to one line, which it ends by closing the connection."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(path))
        client.sendall(question.encode())
        received = b""
        while chunk := client.recv(65536):
            received += chunk
        return received.decode()


def telegraf(text: str) -> dict[tuple[str, str], Row]:
    """Return the rows by proxy and server, as Telegraf's input `haproxy` reads a CSV."""
    lines = text.splitlines()
    assert lines[0].startswith("# "), lines[0]
    names = next(csv.reader([lines[0][2:]]))
    found = {}
    for values in csv.reader(line for line in lines[1:] if line):
        assert len(values) == len(names), values
        row = dict(zip(names, values, strict=True))
        assert int(row["type"]) in range(4)
        found[row["pxname"], row["svname"]] = row
    return found


def datadog_socket(path: Path) -> tuple[dict[str, str], list[Row]]:
    """Return info and rows, as Datadog's legacy check asks for both on one connection."""
    blocks = socket_answer(path, "show info;show stat\r\n").split("\n\n")
    info = dict(line.split(": ", 1) for line in blocks[0].splitlines() if ": " in line)
    names = blocks[1].splitlines()[0].lstrip("# ").split(",")
    rows = [dict(zip(names, line.split(","), strict=False)) for line in blocks[1].splitlines()[1:]]
    major, minor = info["Version"].split(".")[:2]
    assert int(major) >= 1
    assert int(minor) >= 0
    return info, rows


def datadog_page(page: str) -> tuple[str, int]:
    """Return version and uptime in seconds, as Datadog's legacy check finds them in the page."""
    version = re.search(r"HAProxy version ([^,]+)", page)
    uptime = re.search(r"uptime = .*?(\d+)d (\d+)h(\d+)m(\d+)s", page)
    assert version, page[:500]
    assert uptime, page[:500]
    days, hours, minutes, seconds = map(int, uptime.groups())
    return version[1], ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def zabbix_page(page: str) -> str:
    """Return the version that Zabbix' template `HAProxy by HTTP` finds in the page."""
    found = re.search(r"HAProxy version ([^,]*), ", page)
    assert found, page[:500]
    return found[1]


def haproxy_exporter(text: str) -> list[list[str]]:
    """Return the rows that the retired haproxy_exporter takes by position."""
    found = []
    for values in csv.reader(line for line in text.splitlines() if line and not line.startswith("# ")):
        assert len(values) >= 33, values
        assert values[32] in {"0", "1", "2"}
        found.append(values)
    return found
