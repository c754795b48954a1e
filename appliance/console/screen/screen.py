"""Keeps the screen of a virtual machine up to date: what agetty shows above its login prompt.

Every two seconds it looks at files and boards, which is cheap. Only when something there has changed, or
after 20 seconds, it asks the programs and writes the screen again.
"""

import time
from pathlib import Path
from typing import Final

from appliance.console.screen.facts import current_facts
from appliance.console.screen.issue_file import write_issue
from appliance.console.screen.signature import Signature, signature
from appliance.console.screen.text import screen_text
from appliance.model.paths import Paths
from appliance.net.netlink.links import Links

_WAKE_SECONDS: Final = 2.0
_ASK_SECONDS: Final = 20.0
_ASK_SOON_SECONDS: Final = 4.0


def current_screen(paths: Paths, links: Links | None = None) -> str:
    """Return the screen as it should be now; `links` are the interfaces of a caller that asks repeatedly."""
    return screen_text(current_facts(paths, links))


def keep(paths: Paths, issue: Path) -> None:
    """Keep the file `issue` up to date; never returns."""
    before: Signature = ()
    ask_at = 0.0
    with Links() as links:
        while True:
            now, found = time.monotonic(), signature(paths, links)
            if found != before or now >= ask_at:
                # A change is often followed by others that no file shows, so the programs are soon asked
                # again.
                ask_at = now + (_ASK_SECONDS if found == before else _ASK_SOON_SECONDS)
                before = found
                write_issue(current_screen(paths, links), issue)
            time.sleep(_WAKE_SECONDS)
