"""Whether this user may read the runtime directory. Without that check an unreadable one would look empty."""

import os
from pathlib import Path

from appliance.console.output.refusal import Refused
from appliance.net.files import readers
from appliance.net.privileges.user_names import user_name


def require_access(runtime: Path) -> None:
    """Raise ClickException if the runtime directory exists and this user may not read it."""
    try:
        found = runtime.stat()
    except FileNotFoundError:
        return
    except OSError as error:  # a directory above it is closed
        raise Refused(
            f"{runtime}: {error.strerror}", step="ask as root, or name another --runtime-dir"
        ) from error
    if not os.access(runtime, os.R_OK | os.X_OK):
        who = f"as root or as its owner, {user_name(found.st_uid) or f'user {found.st_uid}'}"
        group = readers.group_of(runtime)
        member = f", or as a member of the group {group}" if group else ""
        raise Refused(f"{runtime}: Permission denied", step=f"ask {who}{member}")
