"""Whether a command looks for HAProxy: where we replace it, such a check fails for no obvious reason."""

from collections.abc import Sequence
from pathlib import Path

from appliance.net.files import state_files
from appliance.net.files.state_files import FileUnusable
from appliance.translation.keepalived.commands.check_commands import HAPROXY
from appliance.translation.keepalived.commands.shell_commands import LONGEST_SCRIPT
from appliance.translation.keepalived.commands.vrrp_script_commands import CheckCommand, Doubt, doubt


def names_haproxy(words: Sequence[str]) -> bool:
    """Return whether the words of a command name HAProxy."""
    return any(HAPROXY in each.lower() for each in words)


def runs_haproxys_script(words: Sequence[str]) -> bool:
    """Return whether a command, or the shell script that it runs, names HAProxy. May wait for a disk."""
    command = CheckCommand(text=" ".join(words), words=words, name="")
    return names_haproxy(words) or doubt(command, _content) is Doubt.NAMED


def _content(path: str) -> bytes:
    try:
        content = state_files.read(Path(path), limit=LONGEST_SCRIPT)
    except FileUnusable as error:
        raise OSError(0, str(error), path) from error
    if content is None:
        raise FileNotFoundError(path)
    return content
