"""Tracks of virtual routers, with keepalived's defaults."""

from appliance.model.snapshot.virtual_router import Track, TrackKind


def track(name: str = "web", **changes: object) -> Track:
    """Return a script that is checked each second, with changes."""
    values: dict[str, object] = {
        "name": name,
        "kind": TrackKind.SCRIPT,
        "target": "/bin/true",
        "arguments": (),
        "weight": None,
        "interval": 1.0,
        "timeout": 0.5,
        "rise": 1,
        "fall": 1,
        "user": None,
        "verify": None,
        "expect": (),
    }
    return Track(**{**values, **changes})  # type: ignore[arg-type]  # one mapping, many types
