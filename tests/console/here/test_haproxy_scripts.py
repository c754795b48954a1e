"""`check --here` names scripts that look for HAProxy by what is in their files."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from appliance.console.command import main

pytestmark = pytest.mark.sockets

_SERVED = 'api: { frontends: { k: { bind: ["127.0.0.1:29445"], pool: p } } }\n'
_POOL = 'pools: { p: { servers: { s: { address: "127.0.0.1:29446" } } } }\n'
_INSTANCE = """
vrrp_script check { script SCRIPT }
vrrp_instance VI {
  interface lo
  virtual_router_id 7
  virtual_ipaddress { 192.0.2.200/24 }
  track_script { check }
}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return a script whose words say nothing of HAProxy, and whose commands do."""
    made = tmp_path / "check"
    made.write_text("#!/bin/sh\ncurl -s localhost || exit 1\nkill -0 $(cat /run/haproxy.pid) || exit 1\n")
    made.chmod(0o755)
    return made


def warned(file: Path, *arguments: str) -> list[tuple[str, str, str]]:
    """Return source, path and message of each warning of a script for HAProxy."""
    environment = {"APPLIANCE_CONFIG": str(file), "APPLIANCE_RUNTIME_DIR": str(file.parent / "run")}
    result = CliRunner().invoke(main, ("check", "--here", "--json", *arguments), env=environment)
    found = json.loads(result.stdout)["warnings"]
    return [(each["source"], each["path"], each["message"]) for each in found if "HAProxy" in each["message"]]


@pytest.mark.parametrize(
    ("served", "program"),
    [
        (_SERVED + _POOL, "proxy-api"),
        (_SERVED.replace("pool: p", "pool: p, forward: kernel").replace("127.0.0.1", "192.0.2.200") + _POOL,
         "forward"),
        ("", None),
    ],
)  # fmt: skip
def test_a_script_of_our_own_yaml(tmp_path: Path, script: Path, served: str, program: str | None):
    """Where something of ours replaces HAProxy, its file is read, and the program that answers is named."""
    file = tmp_path / "appliance.yaml"
    file.write_text(
        f"{served}virtual_ips:\n  api:\n    addresses: [192.0.2.200/24]\n    interface: lo\n"
        "    router_id: 7\n"
        f"    track: {{ lives: {{ script: {script} }}, other: {{ script: /bin/true }} }}\n"
    )
    why = (
        "the script's commands name HAProxy, which this appliance replaces: "
        f"`program: {program}` checks the appliance"
    )
    assert warned(file) == ([(str(file), "virtual_ips.api.track.lives.script", why)] if program else [])


def test_a_script_of_keepalived_conf_is_told_once(tmp_path: Path, script: Path):
    """As a line that means something else, which `check` says on any machine."""
    file, keepalived = tmp_path / "appliance.yaml", tmp_path / "keepalived.conf"
    file.write_text(_SERVED + _POOL)
    keepalived.write_text(_INSTANCE.replace("SCRIPT", str(script)))
    ((source, _, message),) = warned(file, "--keepalived", str(keepalived))
    assert (source, "does not run alongside" in message) == (str(keepalived), True)
