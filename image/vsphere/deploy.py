"""`python3 deploy.py PAIR.toml`: deploy load balancers of the OVA to vSphere by govc, on different hosts.

Needs Python 3.11 and govc, which has the address and the login of vCenter from its environment: GOVC_URL,
GOVC_USERNAME, GOVC_PASSWORD, GOVC_INSECURE. PAIR.toml is like pair.toml beside this file. What is there
already stays as it is, so it can be run again after a failure.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_PLACES: Final = {"datastore": "-ds", "folder": "-folder", "host": "-host"}
_KEYS: Final = frozenset({"ova", "cluster", "rule", "configuration", "networks", "properties", "machines"})


class DeployError(Exception):
    """The file or govc says no."""


def main() -> int:
    """Deploy; returns the exit status."""
    parser = argparse.ArgumentParser(prog="deploy.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, help="what to deploy, such as pair.toml")
    try:
        deploy(tomllib.loads(parser.parse_args().file.read_text(encoding="utf-8")))
    except (DeployError, OSError, tomllib.TOMLDecodeError) as error:
        sys.stderr.write(f"deploy: {error}\n")
        return 1
    return 0


def deploy(wanted: Mapping[str, Any]) -> None:
    """Import each machine, keep them on different hosts, and power them on; raises DeployError."""
    unknown = sorted(set(wanted) - _KEYS - set(_PLACES))
    missing = sorted(_KEYS - {"properties"} - set(wanted))
    if unknown or missing:
        raise DeployError(f"unknown keys: {unknown}; missing keys: {missing}")
    machines: dict[str, dict[str, str]] = wanted["machines"]
    for name, own in machines.items():
        if _govc("find", "/", "-type", "m", "-name", name).strip():
            sys.stdout.write(f"{name}: is there already\n")
            continue
        _import(name, wanted, {"hostname": name, **wanted.get("properties", {}), **own})
        sys.stdout.write(f"{name}: imported\n")
    _keep_apart(wanted["cluster"], wanted["rule"], list(machines))
    for name in machines:
        # A machine that runs already answers with an error, and is what is wanted.
        if '"poweredOn"' not in _govc("vm.info", "-json", name):
            _govc("vm.power", "-on", name)
            sys.stdout.write(f"{name}: powered on\n")


def _import(name: str, wanted: Mapping[str, Any], properties: Mapping[str, str]) -> None:
    options = {
        "Name": name,
        "Deployment": wanted["configuration"],
        "DiskProvisioning": "thin",
        "IPAllocationPolicy": "fixedPolicy",
        "IPProtocol": "IPv4",
        "InjectOvfEnv": True,
        "MarkAsTemplate": False,
        "PowerOn": False,
        "WaitForIP": False,
        "NetworkMapping": [{"Name": key, "Network": value} for key, value in wanted["networks"].items()],
        "PropertyMapping": [{"Key": key, "Value": value} for key, value in properties.items()],
    }
    place = [word for key, flag in _PLACES.items() if key in wanted for word in (flag, wanted[key])]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:  # mode 0600: a password may be in it
        json.dump(options, file)
        file.flush()
        _govc(
            "import.ova",
            f"-options={file.name}",
            f"-pool={wanted['cluster']}/Resources",
            *place,
            wanted["ova"],
        )


def _keep_apart(cluster: str, rule: str, names: list[str]) -> None:
    """Make a rule by which DRS keeps the machines on different hosts."""
    if rule in _govc("cluster.rule.ls", "-cluster", cluster).split():
        sys.stdout.write(f"{rule}: is there already\n")
        return
    _govc(
        "cluster.rule.create",
        "-cluster",
        cluster,
        "-name",
        rule,
        "-enable",
        "-anti-affinity",
        *names,
    )
    sys.stdout.write(f"{rule}: made\n")


def _govc(*arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603  # no shell
            ["govc", *arguments],  # noqa: S607  # as who deploys has it
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise DeployError("there is no govc here") from error
    if done.returncode:
        raise DeployError(f"govc {arguments[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
