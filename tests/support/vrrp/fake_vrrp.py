"""A program that answers as vrrp does: `python -m support.vrrp.fake_vrrp SOCKET ANSWER.json [SUCCESSOR]`.

A virtual router that is active here moves to SUCCESSOR, if there is one, and stays away until reclaimed.
"""

import sys
from pathlib import Path
from typing import Any

import gevent
import msgspec

from appliance.net.control.control_server import Call, ControlServer
from appliance.wire.lines.control import Answer, bad, good


class FakeVrrp:
    """Virtual routers as they were given, until they are moved."""

    def __init__(self, said: dict[str, Any], successor: str | None) -> None:
        self._said = said
        self._successor = successor

    def status(self, _: Call) -> Answer:
        """Return what was given."""
        return good(**self._said)

    def move(self, call: Call) -> Answer:
        """Hand over where there is somebody."""
        router = self._named(call)
        if router["state"] != "active":
            return bad(f"{router['name']} is not active here, but {router['state']}")
        if self._successor is None:
            return bad(f"nobody took {router['name']} over: it stays here")
        router.update(state="backup", held=False, yielded=True)
        return good(successor=self._successor)

    def reclaim(self, call: Call) -> Answer:
        """Take part again."""
        router = self._named(call)
        yielded, router["yielded"] = router["yielded"], False
        return good(name=router["name"], changed=yielded)

    def _named(self, call: Call) -> dict[str, Any]:
        name = call.question.text("name")
        return next(each for each in self._said["routers"] if each["name"] == name)


def main() -> None:
    """Serve until killed."""
    socket, answer, *successor = sys.argv[1:]
    fake = FakeVrrp(msgspec.json.decode(Path(answer).read_bytes()), *(successor or [None]))
    handlers = {"status": fake.status, "move": fake.move, "reclaim": fake.reclaim}
    ControlServer(Path(socket), handlers, on_error=print)
    gevent.sleep(600)


if __name__ == "__main__":
    main()
