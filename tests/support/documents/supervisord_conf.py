"""config/supervisord.conf: its blocks of programs, as the table of programs has them."""

import re
import textwrap
from collections.abc import Iterator
from typing import Final

from support.documents.pages import ROOT

from appliance.core.program_table import PROGRAMS, STOP_SECONDS, Program, variable
from appliance.model.program_names import RELOAD

CONF: Final = ROOT / "config/supervisord.conf"

_BLOCKS: Final = re.compile(r"^\[program:.*(?=^; Nothing but)", re.DOTALL | re.MULTILINE)
_WIDTH: Final = 110
_FOR_ALL: Final = """\
autorestart = true
startsecs = 1
startretries = 1000000000
stopsignal = TERM
killasgroup = true
stdout_logfile = /dev/stdout
stdout_logfile_maxbytes = 0
stderr_logfile = NONE
stderr_events_enabled = true
"""


def renewed(conf: str) -> str:
    """Return supervisord.conf with the blocks of today."""
    return _BLOCKS.sub(lambda _: "".join(f"{block(each)}\n" for each in PROGRAMS), conf)


def block(program: Program) -> str:
    """Return what supervisord is told about one program."""
    return "".join(f"{line}\n" for line in _lines(program)) + _FOR_ALL


def _lines(program: Program) -> Iterator[str]:
    command = " ".join(('"%(ENV_APPLIANCE_PYTHON)s"', "-Ps -m", program.module, *program.arguments))
    yield f"[program:{program.name}]"
    yield f"command = {command}"
    if program.name != RELOAD:
        yield f"autostart = %(ENV_{variable('START', program.name)})s"
    yield from textwrap.wrap(program.why_then, _WIDTH, initial_indent="; ", subsequent_indent="; ")
    yield f"priority = {program.stop_priority}"
    seconds = f"%(ENV_{variable('STOP_SECONDS', program.name)})s" if program.stop_seconds else STOP_SECONDS
    yield f"stopwaitsecs = {seconds}"
