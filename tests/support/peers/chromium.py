"""A real Chromium without a window, driven by its DevTools protocol over two pipes: no port, no library.

Each message is JSON with a zero byte behind it: commands to its descriptor 3, answers and events from its 4
(`--remote-debugging-pipe`). What a page complains of is kept: exceptions, errors of the console, violations
of the Content-Security-Policy, requests that failed.
"""

import base64
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from support.processes.processes import end
from support.processes.waiting import Late, wait_until

_PATIENCE: Final = 60.0
_OPTIONS: Final = (
    "--headless=new",
    "--no-sandbox",  # it refuses to run as root with one
    "--disable-dev-shm-usage",  # containers have 64 MB there
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--password-store=basic",
    "--remote-debugging-pipe",
)

Values = Mapping[str, object]


class Refused(AssertionError):  # noqa: N818  # reads as what happened in a test's report
    """A command that Chromium did not obey; a page that goes away refuses those that come meanwhile."""


class Chromium:
    """The browser. Use it as a context manager: at the end it is gone, with its directory."""

    def __enter__(self) -> Self:
        self._directory = tempfile.TemporaryDirectory(prefix="lb-chromium-", ignore_cleanup_errors=True)
        root = Path(self._directory.name)
        theirs_in, self._commands = os.pipe()
        self._events, theirs_out = os.pipe()
        # A shell gives the pipes their numbers: Popen cannot.
        redirected = f'exec "$0" "$@" 3</proc/self/fd/{theirs_in} 4>/proc/self/fd/{theirs_out}'
        self._log = root / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", redirected, "chromium", *_OPTIONS, f"--user-data-dir={root / 'data'}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs_in, theirs_out),
                env={**os.environ, "HOME": str(root)},
                start_new_session=True,
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._received = b""
        self._number = 0
        self._tabs: dict[str, Tab] = {}
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._commands)
        end(self._process, patience=10.0)
        os.close(self._events)
        self._directory.cleanup()

    def tab(self, *, width: int = 1280, height: int = 800, dark: bool = False) -> "Tab":
        """Return a new tab, with an empty page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, str(session))
        self._tabs[str(session)] = tab
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call("Page.setLifecycleEventsEnabled", enabled=True)
        tab.call("Emulation.setFocusEmulationEnabled", enabled=True)  # else a tab behind another is hidden
        tab.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        return tab

    def call(self, method: str, session: str | None = None, **parameters: object) -> Values:
        """Return what Chromium answers to a command; raises Refused."""
        self._number += 1
        number = self._number
        message: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _PATIENCE
        while True:
            answer = self._message(deadline, method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise Refused(f"{method}: {answer['error']}")
                return answer["result"]  # type: ignore[return-value]  # JSON of a known shape
            self._heard(answer)

    def _message(self, deadline: float, method: str) -> Values:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._events], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._events, 1 << 20) if ready else b""
            if not chunk:
                why = "has ended" if ready else "says nothing"
                raise Refused(f"{method}: Chromium {why}:\n{self._log.read_text(errors='replace')[-4000:]}")
            self._received += chunk
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]  # an object, by the protocol

    def _heard(self, event: Values) -> None:
        tab = self._tabs.get(str(event.get("sessionId")))
        if tab is not None:
            tab.heard(str(event.get("method")), event["params"])  # type: ignore[arg-type]  # an object


class Tab:
    """One page. `complaints` is all that was wrong in it since the start."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session
        self._loaded: set[str] = set()
        self.complaints: list[str] = []

    def call(self, method: str, **parameters: object) -> Values:
        """Return what Chromium answers to a command about this tab; raises Refused."""
        return self._browser.call(method, self._session, **parameters)

    def resize(self, width: int, height: int) -> None:
        """Give the page another size, in pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def without_scripts(self) -> None:
        """Run no script of a page from now on."""
        self.call("Emulation.setScriptExecutionDisabled", value=True)

    def go(self, url: str) -> None:
        """Load a page, with all that belongs to it."""
        loader = self.call("Page.navigate", url=url).get("loaderId")
        wait_until(lambda: self._has_loaded(str(loader)), what=f"{url} is loaded", timeout=_PATIENCE)

    def value(self, expression: str) -> object:
        """Return the value of an expression of JavaScript, None where the page just goes away."""
        try:
            answer = self.call(
                "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
            )
        except Refused:
            return None
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")  # type: ignore[attr-defined]  # an object, by the protocol

    def until(self, expression: str) -> object:
        """Return the first true value of an expression."""
        return wait_until(lambda: self.value(expression), what=expression, timeout=_PATIENCE, pause=0.05)

    def text(self, selector: str = "main") -> str:
        """Return the text that people see, spaces as one."""
        return " ".join(str(self.value(f"document.querySelector({selector!r})?.innerText")).split())

    def until_text(self, words: str, selector: str = "main") -> None:
        """Return when the page says something."""
        try:
            wait_until(
                lambda: words in self.text(selector),
                what=f"{selector} says {words!r}",
                timeout=_PATIENCE,
                pause=0.05,
            )
        except Late as late:
            seen = f"{self.value('location.href')}, {self.complaints}, {self.text('body')[:2000]}"
            raise Late(f"{late}: {seen}") from None

    def click(self, selector: str) -> None:
        """Click on what is there, which has to be visible and not covered."""
        self.until(_CLICK.replace("SELECTOR", json.dumps(selector)))

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write a picture of what is seen, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(str(answer["data"])))

    def heard(self, method: str, event: Values) -> None:
        """Take an event about this tab."""
        if method == "Page.lifecycleEvent" and event.get("name") == "load":
            self._loaded.add(str(event["loaderId"]))
        complaint = _complaint(method, event)
        if complaint:
            self.complaints.append(complaint)

    def _has_loaded(self, loader: str) -> bool:
        self.call("Runtime.evaluate", expression="0")  # lets events come in
        return loader in self._loaded


_CLICK: Final = """(() => {
  const found = document.querySelector(SELECTOR);
  if (!found) return false;
  found.scrollIntoView({block: "center", inline: "center"});
  const box = found.getBoundingClientRect();
  const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  if (!hit || !(hit === found || found.contains(hit))) return false;
  found.click();
  return true;
})()"""


def _complaint(method: str, event: Values) -> str | None:
    """Return what is wrong by an event of the protocol, None where nothing is."""
    if method == "Runtime.exceptionThrown":
        return f"exception: {event['exceptionDetails']}"
    if method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
        return f"console: {event['args']}"
    if method == "Log.entryAdded":
        entry: Values = event["entry"]  # type: ignore[assignment]  # an object, by the protocol
        return (
            f"{entry['source']}: {entry['text']} {entry.get('url', '')}" if entry["level"] != "info" else None
        )
    return None
