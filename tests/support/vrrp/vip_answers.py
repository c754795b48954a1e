"""What vrrp answers to `status`, with the few fields that a test is about."""

import time


def router(name: str = "api", *, state: str = "active", **changes: object) -> dict[str, object]:
    """Return a virtual router as vrrp describes it: for two hours in its state, with one track that is up."""
    now = time.time()
    return {
        "name": name,
        "interface": "eth0",
        "family": 4,
        "version": 2,
        "router_id": 51,
        "state": state,
        "since": now - 7200,
        "priority": 120,
        "base": 100,
        "parts": [part("serving")],
        "fault_reasons": [],
        "addresses": ["192.0.2.200/24"],
        "held": state == "active",
        "source": "192.0.2.1",
        "peers": [],
        "heard": [heard("192.0.2.2", state="silent", last_heard=now - 10800)],
        "timers": {
            "advert": 1.0,
            "deadline_in": 0.5,
            "active_interval": 1.0,
            "skew": 0.53125,
            "down_interval": 3.53125,
        },
        "transitions": [
            {"at": now - 7204, "state": "backup", "previous": "initialize", "cause": "started", "peer": None},
            {
                "at": now - 7200,
                "state": "active",
                "previous": "backup",
                "cause": "active-down",
                "peer": "192.0.2.2",
            },
        ],
        "conflicts": [],
        "routes": [],
        "route_troubles": [],
        "yielded": False,
        "leaving": False,
        "sync_group": None,
        "counters": {"adverts_sent": 60, "adverts_received": 0, "transitions": 2},
        "drops": {"checksum": 3, "version": 0},
        "uninformed_for": 0.0,
        "awaited": [],
        **changes,
    }


def part(track: str, **changes: object) -> dict[str, object]:
    """Return what a tracked thing that is up adds to a priority."""
    return {"track": track, "weight": 20, "up": True, "value": 0, "added": 20, "detail": "", **changes}


def heard(peer: str, **changes: object) -> dict[str, object]:
    """Return a router that is heard as active now."""
    return {"peer": peer, "priority": 90, "last_heard": time.time(), "state": "active", **changes}


def answer(*routers: dict[str, object], **changes: object) -> dict[str, object]:
    """Return the whole answer of a program that has what it needs."""
    return {
        "program": "vrrp",
        "pid": 4711,
        "started_at": 1.0,
        "snapshot": 3,
        "missing": [],
        "realtime": {"scheduler": True, "memory": True, "oom": True, "refused": []},
        "late_wakeups": 0,
        "latest_wakeup_s": 0.0,
        "routers": list(routers),
        **changes,
    }
