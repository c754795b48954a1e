"""Log lines, written by a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs


def run(code: str, **keywords: object) -> subprocess.CompletedProcess[bytes]:
    """Run code that has `log` imported."""
    program = f"from appliance.net.logging import log\n{code}"
    return subprocess.run([sys.executable, "-c", program], check=True, timeout=30, **keywords)  # type: ignore[call-overload]  # the test's own words


def test_a_json_line_has_event_and_fields():
    """An event is one JSON object a line, with program, level, time and its own fields."""
    done = run(
        "logger = log.configure('health', level='info', form='json')\n"
        "logger.warning('server-down', pool='masters', failures=2)",
        stdout=subprocess.PIPE,
    )
    line = json.loads(done.stdout)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "server-down",
        "program": "health",
        "level": "warning",
        "pool": "masters",
        "failures": 2,
    }


def test_the_console_form_is_readable():
    """The console form has the event and its fields as words, without colour when nobody watches."""
    done = run(
        "log.configure('health', level='info', form='console').info('server-up', pool='masters')",
        stdout=subprocess.PIPE,
    )
    assert b"server-up" in done.stdout
    assert b"pool=masters" in done.stdout
    assert b"\x1b[" not in done.stdout


def test_lines_below_the_level_are_not_written():
    """With level warning an info line is not written."""
    done = run(
        "logger = log.configure('x', level='warning', form='json')\nlogger.info('no')\nlogger.warning('yes')",
        stdout=subprocess.PIPE,
    )
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["yes"]


def test_an_exception_is_in_the_line():
    """A logged exception has its traceback in the same line."""
    done = run(
        "logger = log.configure('x', level='info', form='json')\n"
        "try:\n  1/0\nexcept ZeroDivisionError:\n  logger.exception('broken')",
        stdout=subprocess.PIPE,
    )
    (line,) = done.stdout.splitlines()
    assert "ZeroDivisionError" in json.loads(line)["exception"]


def test_a_pipe_that_nobody_reads_stops_nobody():
    """A program whose log pipe is full, and then closed, goes on."""
    read, write = os.pipe()
    code = (
        "import sys\n"
        "logger = log.configure('x', level='info', form='json')\n"
        "for _ in range(3000): logger.info('a-line', text='x' * 100)\n"
        "sys.stderr.write('done'); sys.stderr.flush()\n"
        "sys.stdin.read()\n"
        "logger.info('into a closed pipe')\n"
        "sys.stderr.write(' and well')\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", f"from appliance.net.logging import log\n{code}"],
        stdin=subprocess.PIPE,
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    assert child.stderr is not None
    assert child.stdin is not None
    assert child.stderr.read(4) == b"done"
    os.close(read)
    _, said = child.communicate(timeout=30)
    assert said == b" and well"
    assert child.returncode == 0


def test_a_logger_without_level_keeps_its_fields():
    """What has a switch of its own is written whatever the level is, with the fields bound before."""
    done = run(
        "logger = log.configure('x', level='error', form='json').bind(worker=1)\n"
        "log.unfiltered(logger).info('asked-for', answer=2)\n"
        "logger.info('not asked for')",
        stdout=subprocess.PIPE,
    )
    (line,) = map(json.loads, done.stdout.splitlines())
    expected = {"event": "asked-for", "program": "x", "level": "info", "worker": 1, "answer": 2}
    assert expected.items() <= line.items()


def test_programs_start_without_what_they_do_not_use():
    """No program imports asyncio, YAML or pydantic: each would take its time at every start, and memory."""
    done = run(
        "import importlib, sys\n"
        "for each in ('health', 'proxy', 'reload', 'supervisor', 'worker'):\n"
        "    importlib.import_module(f'appliance.programs.{each}')\n"
        "print({'asyncio', 'colorama', 'pydantic', 'rich', 'yaml'} & set(sys.modules))\n"
        "import asyncio\n"
        "print(asyncio.run(asyncio.sleep(0, 'as ever')))",
        stdout=subprocess.PIPE,
    )
    assert done.stdout.decode().splitlines() == ["set()", "as ever"]


def test_a_package_that_was_hidden_is_found_again_whatever_happens():
    """An import that fails meanwhile must not take another package away from the process."""
    done = run(
        "import contextlib, sys; from appliance.net.logging import lean_structlog\n"
        "with contextlib.suppress(ValueError), lean_structlog.hidden('json'):\n"
        "    raise ValueError\n"
        "import json\n"
        "print(json.dumps(lean_structlog.hidden('absent').__enter__()))",
        stdout=subprocess.PIPE,
    )
    assert done.stdout == b"null\n"


FLOOD = (
    "import time\n"
    "logger = log.configure('x', level='debug', form='json')\n"
    "for number in range(5000): logger.warning('reload-line-unknown', reason=str(number))\n"
)


def test_a_flood_of_one_event_is_cut_and_its_number_told():
    """Of 5,000 equal lines a few are written; when the interval is over a line says how many were not."""
    done = run(
        FLOOD
        + "log.configure('x', level='info', form='json').info('reload-done')\n"  # forgets nothing
        + "log.limiter().tick(time.monotonic() + 60.0)\n",
        stdout=subprocess.PIPE,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    written = [line for line in lines if line["event"] == "reload-line-unknown"]
    assert 0 < len(written) < 50
    assert [line["event"] for line in lines[len(written) :]] == ["reload-done", "lines-left-out"]
    assert lines[-1]["of"] == "reload-line-unknown"
    assert lines[-1]["count"] == 5000 - len(written)
    assert lines[-1]["program"] == "x"


def test_servers_that_go_down_together_are_all_written(tmp_path: Path):
    """A thousand servers that change their state at once are a thousand lines."""
    written = tmp_path / "log"  # a pipe may be full: its lines would be lost
    with written.open("wb") as output:
        run(
            "logger = log.configure('health', level='info', form='json')\n"
            "for number in range(1000): logger.warning('server-state', pool='p', server=f's{number}')",
            stdout=output,
        )
    assert len(written.read_bytes().splitlines()) == 1000


def test_lines_with_a_switch_of_their_own_are_not_limited():
    """Lines of debug, and those for each connection, are written however many there are."""
    done = run(
        "logger = log.configure('x', level='debug', form='json')\n"
        "each = log.unfiltered(logger)\n"
        "for number in range(200): each.info('connection'); logger.debug('check')",
        stdout=subprocess.PIPE,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 400
    assert not any("_unlimited" in line for line in lines)
