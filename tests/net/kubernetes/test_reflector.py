"""A reflector beside real API servers over TLS: it knows what they know, whatever they do."""

import base64
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme
import yaml
from support.discovery.kube_api import (
    NODES,
    Credentials,
    KubeApi,
    KubeCluster,
    Trouble,
    credentials,
    node,
)
from support.network.ports import free_port
from support.processes.waiting import wait_until

from appliance.core.discovery import reflection, retries
from appliance.model.snapshot.discovery import MASTERS, ApiAddress, Kubernetes
from appliance.net.kubernetes import api_connection, reflector
from appliance.net.kubernetes.reflector import ApiServers, Failed, Reflector, Seen
from appliance.wire.kubernetes import requests

pytestmark = pytest.mark.sockets


@dataclass(slots=True)
class Told:
    """What a reflector has told."""

    messages: list[Seen | Failed] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Return the names of the objects that were told last."""
        lists = [
            each.objects for each in self.messages if isinstance(each, Seen) and each.objects is not None
        ]
        return [each.metadata.name for each in lists[-1]] if lists else []

    @property
    def failures(self) -> list[str]:
        """Return the kinds of failures."""
        return [each.reason for each in self.messages if isinstance(each, Failed)]

    def wait_for(self, *names: str) -> None:
        """Wait until these are the objects."""
        wait_until(lambda: self.names == list(names), what=f"{names} are known")

    def wait_for_failure(self, reason: str) -> None:
        """Wait until there was such a failure."""
        wait_until(lambda: reason in self.failures, what=f"failure {reason}")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do in a second what takes ten: deadlines and waits are shorter, their relations the same."""
    monkeypatch.setattr(api_connection, "SILENCE", 1.3)
    monkeypatch.setattr(api_connection, "LIST", 1.3)
    monkeypatch.setattr(reflector, "WATCH", 1)
    monkeypatch.setattr(reflector, "_PACE", 0.05)
    monkeypatch.setattr(retries, "FIRST", 0.05)
    monkeypatch.setattr(retries, "LONGEST", 0.2)
    monkeypatch.setattr(retries, "REFUSED", 0.2)


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster with its servers, and the files that let a reflector in."""

    cluster: KubeCluster
    apis: list[KubeApi]
    files: Credentials
    authority: trustme.CA

    def settings(self, **changes: object) -> Kubernetes:
        """Return how the servers are asked."""
        values: dict[str, object] = {
            "kubeconfig": None,
            "token_file": str(self.files.token),
            "ca": str(self.files.authority),
            "api": tuple(ApiAddress(host=each.host, port=each.port) for each in self.apis),
            "server_name": None,
            "family": None,
        }
        return Kubernetes(**{**values, **changes})


@contextlib.contextmanager
def site(directory: Path, *, apis: int = 1) -> Iterator[Site]:
    """Run API servers of a cluster with the Nodes `a` and `b`."""
    authority, cluster = trustme.CA(), KubeCluster()
    cluster.put(NODES, node("a", "10.0.0.1"))
    cluster.put(NODES, node("b", "10.0.0.2"))
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(KubeApi(cluster, authority)) for _ in range(apis)]
        yield Site(cluster, servers, credentials(directory, authority), authority)


@contextlib.contextmanager
def reflecting(settings: Kubernetes, *, servers: ApiServers | None = None) -> Iterator[Told]:
    """Run a reflector of masters."""
    told = Told()
    subject = Reflector(requests.nodes(MASTERS), settings, servers or ApiServers(), told.messages.append)
    subject.start()
    try:
        yield told
    finally:
        subject.stop()


def test_it_lists_once_and_then_watches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Pages make one list; changes come as events, over one connection, without another list."""
    monkeypatch.setattr(reflector, "_PAGE", 1)
    with site(tmp_path) as made, reflecting(made.settings()) as told:
        told.wait_for("a", "b")
        made.cluster.put(NODES, node("c", "10.0.0.3"))
        told.wait_for("a", "b", "c")
        made.cluster.remove(NODES, "a")
        told.wait_for("b", "c")
        wait_until(lambda: sum("watch=1" in each for each in made.apis[0].asked) > 2, what="three watches")
        assert sum("watch=1" not in each for each in made.apis[0].asked) == 2
        assert told.failures == []


def test_the_loss_of_a_server_costs_no_list(tmp_path: Path):
    """The next one is asked from the version that is known."""
    with site(tmp_path, apis=2) as made, reflecting(made.settings()) as told:
        told.wait_for("a", "b")
        first, second = sorted(made.apis, key=lambda each: not each.asked)
        first.stop()
        made.cluster.put(NODES, node("c", "10.0.0.3"))
        told.wait_for("a", "b", "c")
        assert all("watch=1" in each for each in second.asked)


def test_a_list_after_a_gap_replaces_what_was_known(tmp_path: Path):
    """What vanished meanwhile is gone: after a compaction, and after a history that began anew."""
    with site(tmp_path) as made, reflecting(made.settings()) as told:
        told.wait_for("a", "b")
        with made.apis[0].in_trouble(Trouble(status=500)):
            told.wait_for_failure("error")
            made.cluster.remove(NODES, "a")
            made.cluster.put(NODES, node("c", "10.0.0.3"))
            made.cluster.forget()
        told.wait_for("b", "c")
        assert "expired" in told.failures
        with made.apis[0].in_trouble(Trouble(status=503)):
            made.cluster.remove(NODES, "b")
            made.cluster.restart_history()
        told.wait_for("c")


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (Trouble(status=401), "unauthorized"),
        (Trouble(status=403), "forbidden"),
        (Trouble(status=404), "missing"),
        (Trouble(status=400), "refused"),
        (Trouble(status=410), "expired"),
        (Trouble(status=429, headers={"Retry-After": "0"}), "busy"),
        (Trouble(status=503, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), "error"),
        (Trouble(hangs=True), "silent"),
        (Trouble(body=b"{\n"), "not-understood"),
        (Trouble(body=b'{"metadata":{"resourceVersion":"1"},"items":[7]}\n'), "not-understood"),
        (Trouble(body=b'{"type":"ADDED"'), "not-http"),
    ],
    ids=str,
)
def test_every_trouble_has_its_name_and_is_survived(tmp_path: Path, trouble: Trouble, reason: str):
    """What is known stays while it lasts, and what changed meanwhile is known afterwards."""
    with site(tmp_path) as made, reflecting(made.settings()) as told:
        told.wait_for("a", "b")
        with made.apis[0].in_trouble(trouble):
            told.wait_for_failure(reason)
            assert told.names == ["a", "b"]
            made.cluster.put(NODES, node("c", "10.0.0.3"))
        told.wait_for("a", "b", "c")


def test_a_bug_of_ours_is_told_and_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The thread goes on, and lists again once the bug's cause is gone."""
    decoded = reflector.decode_page
    broken = [True]

    def decode(*arguments: object) -> object:
        if broken:
            raise ZeroDivisionError("the bug")
        return decoded(*arguments)  # type: ignore[arg-type]  # as it was given

    monkeypatch.setattr(reflector, "decode_page", decode)
    with site(tmp_path) as here, reflecting(here.settings()) as told:
        told.wait_for_failure("internal")
        assert any("ZeroDivisionError: the bug" in getattr(each, "message", "") for each in told.messages)
        broken.clear()
        told.wait_for("a", "b")


def test_an_answer_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An event or a list without end costs the connection, and no memory."""
    with site(tmp_path) as made, reflecting(made.settings()) as told:
        told.wait_for("a", "b")
        monkeypatch.setattr(api_connection, "_MOST_LINE", 2000)
        made.cluster.put(NODES, node("c", "10.0.0.3", labels={"long": "x" * 5000}))
        told.wait_for_failure("too-large")
        monkeypatch.setattr(api_connection, "_MOST_PAGE", 100)
        made.cluster.forget()
        wait_until(lambda: told.failures.count("too-large") > 3, what="the list is too large as well")
        assert told.names == ["a", "b"]


def test_too_many_objects_are_asked_for_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Twenty pages of Nodes at every try are a load on the cluster, and no other server has fewer of them."""
    monkeypatch.setattr(reflection, "MOST_OBJECTS", 1)
    waits: list[int] = []

    def refused(_: retries.Retries) -> float:
        waits.append(sum(len(each.asked) for each in made.apis))
        return 0.05

    monkeypatch.setattr(retries.Retries, "refused", refused)
    with site(tmp_path, apis=2) as made, reflecting(made.settings()) as told:
        wait_until(lambda: len(waits) > 1, what="it waits after each list")
        assert waits[:2] == [1, 2]
        assert set(told.failures) == {"too-large"}
        made.cluster.remove(NODES, "a")
        told.wait_for("b")


def test_watches_that_end_at_once_are_not_made_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A server in trouble is not asked more than once in the pace, here 50 ms."""
    monkeypatch.setattr(reflector, "WATCH", 0)
    with site(tmp_path) as made, reflecting(made.settings()) as told:
        told.wait_for("a", "b")
        begun = time.monotonic()
        wait_until(lambda: len(made.apis[0].asked) > 5, what="some watches")
        assert (len(made.apis[0].asked) - 2) * 0.05 <= time.monotonic() - begun + 0.1


def test_the_certificates_name_is_checked(tmp_path: Path):
    """A server with the right authority and another name is not asked; nor is one of another authority."""
    with site(tmp_path) as made:
        with KubeApi(made.cluster, made.authority, name="somebody.else") as other:
            api = (ApiAddress(host=other.host, port=other.port),)
            with reflecting(made.settings(api=api)) as told:
                told.wait_for_failure("certificate")
            with reflecting(made.settings(api=api, server_name="somebody.else")) as told:
                told.wait_for("a", "b")
        with KubeApi(made.cluster, trustme.CA()) as stranger:
            api = (ApiAddress(host=stranger.host, port=stranger.port),)
            with reflecting(made.settings(api=api)) as told:
                told.wait_for_failure("certificate")
            assert stranger.asked == []


def test_a_token_that_rotates_is_read_again(tmp_path: Path):
    """At the next request, without a restart; a file that is damaged for a moment costs nothing."""
    with site(tmp_path) as made, reflecting(made.settings()) as told:
        told.wait_for("a", "b")
        made.apis[0].tokens = {"another"}
        made.apis[0].close_watches()
        told.wait_for_failure("unauthorized")
        made.files.token.write_text("two words")
        told.wait_for_failure("access")
        made.files.token.write_text("another\n")
        made.cluster.put(NODES, node("c", "10.0.0.3"))
        told.wait_for("a", "b", "c")


def test_an_authority_that_rotates_is_read_again(tmp_path: Path):
    """New certificates are trusted as soon as the file has their authority."""
    with site(tmp_path) as made, reflecting(made.settings()) as told:
        told.wait_for("a", "b")
        authority, port = trustme.CA(), made.apis[0].port
        made.apis[0].stop()
        with KubeApi(made.cluster, authority, port=port):
            told.wait_for_failure("certificate")
            made.files.authority.write_bytes(authority.cert_pem.bytes())
            made.cluster.put(NODES, node("c", "10.0.0.3"))
            told.wait_for("a", "b", "c")


def test_masters_that_were_found_are_asked_too(tmp_path: Path):
    """The operator's own address may be gone for good."""
    servers = ApiServers()
    with site(tmp_path) as made:
        gone = (ApiAddress(host="127.0.0.1", port=free_port()),)
        servers.found([ApiAddress(host=made.apis[0].host, port=made.apis[0].port)])
        with reflecting(made.settings(api=gone), servers=servers) as told:
            told.wait_for("a", "b")


def test_a_kubeconfig_with_a_client_certificate(tmp_path: Path):
    """Authority, certificate and key may stand in it, or in files beside it; no token is needed."""
    with site(tmp_path) as made:
        identity = made.authority.issue_cert("appliance")
        made.files.token.unlink()
        (tmp_path / "me.crt").write_bytes(identity.cert_chain_pems[0].bytes())
        encoded = base64.b64encode(identity.private_key_pem.bytes()).decode()
        values = {
            "current-context": "me",
            "contexts": [{"name": "me", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {
                    "name": "c",
                    "cluster": {
                        "server": f"https://{made.apis[0].address}",
                        "certificate-authority": "ca.crt",
                    },
                }
            ],
            "users": [{"name": "u", "user": {"client-certificate": "me.crt", "client-key-data": encoded}}],
        }
        file = tmp_path / "kubeconfig"
        file.write_text(yaml.safe_dump(values))
        settings = made.settings(kubeconfig=str(file), token_file=None, ca=None, api=())
        with reflecting(settings) as told:
            told.wait_for("a", "b")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("users: [", "kubeconfig: line 1"),
        ("{}", "current-context: is missing"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, content: str, words: str):
    """With their path and what is wrong; nothing is asked."""
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    values = dict.fromkeys(("token_file", "ca", "server_name", "family"))
    with reflecting(Kubernetes(kubeconfig=str(file), api=(), **values)) as told:
        told.wait_for_failure("access")
        first = told.messages[0]
        assert isinstance(first, Failed)
        assert words in first.message
        assert str(file) in first.message
