"""What a page calls a key, an option, a metric or an event is one."""

import re
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.documents import commands_page, configuration_page, events_page, metrics_page
from support.documents.pages import DOCS, ROOT, blocks, name_of
from support.openshift.peers_file import peers_file

from appliance.console.command import COMMANDS
from appliance.model.config.section import Section
from appliance.model.end_reasons import EndReason
from appliance.model.paths import NODE_VARIABLE, Paths
from appliance.net.kubernetes.api_access import Failure
from appliance.net.sources.judging import judge
from appliance.net.sources.read_files import ReadFiles

pytestmark = pytest.mark.pure

_PAGES: Final = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
_CODE: Final = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
_INLINE: Final = re.compile(r"`([^`\n]+)`")
_METRIC: Final = re.compile(r"^((?:appliance|haproxy|keepalived)_[a-z_]+[a-z])(?:[{\[ ].*)?$")
_EVENT: Final = re.compile(r"^[a-z]+(?:-[a-z]+)+$")
_OPTION: Final = re.compile(r"(?:^|[ \[])(--[a-z][a-z-]+)")
_KEYS: Final = re.compile(r"^([a-z_]+(?:\.[a-zA-Z_]+)*):(?: .*)?$")

_SERIES: Final = ("_bucket", "_sum", "_count")
_FILES: Final = {"haproxy_exporter", "keepalived_exporter", "haproxy_ready", "haproxy_monitor"}
"""Of other tools, or paths: no metrics."""

_OPTIONS: Final = commands_page.options() | {"--help", "--version"}
_FOREIGN_OPTIONS: Final = {
    "--system",
    "--listening",
    "--tcp",
    "--processes",
    "--unit",
    "--resolve",
    "--append",
    "--groups",
    "--cap-add",
    "--cap-drop",
    "--read-only",
    "--network",
    "--kill-whom",
    "--signal",
    "--check",
    "--diff",
}
"""Of useradd, usermod, ss, journalctl, systemctl, curl, podman and ansible-playbook."""

_VARIABLES: Final = set(
    yaml.safe_load((ROOT / "image/ansible/roles/appliance/defaults/main.yml").read_text())
)
"""Of the Ansible role."""

_NO_EVENTS: Final = {
    *("proxy-api", "proxy-ingress", "kube-api", "machine-config", "kube-apiserver", "api-int"),
    *("no-new-privileges", "systemd-analyze", "kube-vip", "hard-stop-after", "accept-proxy", "monitor-uri"),
    *("monitor-net", "http-request", "ssh-keygen", "openssh-client", "release-signers", "valid-before"),
}
"""Programs, names in examples, tools, and words of HAProxy."""

_SAID: Final = frozenset({"supervisor: not asked"})
"""By `status`: no key."""


def _names(path: Path) -> list[str]:
    return _INLINE.findall(_CODE.sub("", path.read_text()))


@pytest.mark.parametrize("path", _PAGES, ids=name_of)
def test_metrics_exist(path: Path):
    """A name that begins as those of a scrape do is one of them."""
    known = {each.name for each in metrics_page.metrics()}
    known |= {f"{each}{ending}" for each in known for ending in _SERIES}
    named = {found[1] for each in _names(path) if (found := _METRIC.match(each))}
    beginnings = {each for each in named if any(name.startswith(f"{each}_") for name in known)}
    assert named - known - _FILES - _VARIABLES - beginnings == set()


@pytest.mark.parametrize("path", _PAGES, ids=name_of)
def test_events_exist(path: Path):
    """What is written as an event is one, or a value of the configuration, a command, a check's result."""
    named = {each for each in _names(path) if _EVENT.match(each)}
    known = (
        events_page.events()
        | {each.value for each in (*EndReason, *Failure)}
        | configuration_page.values()
        | COMMANDS.keys()
        | _NO_EVENTS
    )
    assert named - known == set()


@pytest.mark.parametrize("path", _PAGES, ids=name_of)
def test_options_exist(path: Path):
    """Each `--option` in a sentence is an option of ours, or known to be another program's."""
    named = {option for each in _names(path) for option in _OPTION.findall(each)}
    assert named - _OPTIONS - _FOREIGN_OPTIONS == set()


@pytest.mark.parametrize("path", _PAGES, ids=name_of)
def test_keys_exist(path: Path):
    """A piece of configuration in a sentence has keys of the model; a dotted one leads to a key."""
    keys = configuration_page.keys()
    sections = {name for each in Section.__subclasses__() for name in each.model_fields}
    wrong = []
    for each in _names(path):
        if (
            (found := _KEYS.match(each))
            and each not in _SAID
            and not each.startswith(("http", "unix", "file:"))
        ):
            last = found[1].rpartition(".")[2]
            if last not in keys | sections:
                wrong.append(each)
    assert wrong == []


_FILES_BESIDE: Final = {"/etc/kubernetes/static-pod-resources/frr-k8s/frr-peers.json": peers_file()}
"""What configurations of the pages name as their source."""

_YAML: Final = [
    (block, block.text) for path in _PAGES for block in blocks(path, "yaml") if not block.text.startswith(" ")
]


@pytest.mark.parametrize(("block", "text"), _YAML, ids=[str(block) for block, _ in _YAML])
def test_configurations_are_good(block: object, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A whole configuration has no error; a part has none that a whole one with the rest would not mend.

    A part is laid over the first configuration: sections that it lacks come from there.
    """
    del block
    monkeypatch.setenv(NODE_VARIABLE, "lb-0")
    path = tmp_path / "appliance.yaml"
    path.write_text(text)
    alone = judge(Paths(config=path), ReadFiles(_FILES_BESIDE), number=1)
    if alone.errors:
        path.write_text(f"{_first_without(text)}{text}")
        alone = judge(Paths(config=path), ReadFiles(_FILES_BESIDE), number=1)
    assert alone.errors == ()


def _first_without(text: str) -> str:
    """Return the first configuration without the sections that a part has."""
    first = next(iter(blocks(DOCS / "configuring.md", "yaml"))).text
    own = set(re.findall(r"^(\w+):", text, re.MULTILINE))
    sections = re.split(r"^(?=\w)", first, flags=re.MULTILINE)
    return "".join(each for each in sections if each.partition(":")[0] not in own)
