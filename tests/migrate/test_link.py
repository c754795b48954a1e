"""Connections between two nodes: each end believes only a certificate of its own authorities."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import gevent
import pytest
import trustme
from gevent import socket
from support.network.ports import free_port

from appliance.migrate import link
from appliance.migrate.link import LinkError
from appliance.model.snapshot.linger import MovedSessions

pytestmark = pytest.mark.sockets

_SECONDS: Final = 10.0


@pytest.fixture
def member(tmp_path: Path) -> MovedSessions:
    """Give the settings of a node."""
    return _settings(tmp_path, "ours")


@pytest.fixture
def stranger(tmp_path: Path, member: MovedSessions) -> MovedSessions:
    """Give those of a node with another authority's certificate that believes the former one."""
    return replace(_settings(tmp_path, "foreign"), authorities=member.authorities, port=member.port)


def _settings(directory: Path, name: str) -> MovedSessions:
    authority = trustme.CA()
    own, believed = directory / f"{name}.pem", directory / f"{name}-authority.pem"
    authority.issue_cert("lb").private_key_and_cert_chain_pem.write_to_path(own)
    authority.cert_pem.write_to_path(believed)
    return MovedSessions(port=free_port(), certificate=str(own), authorities=str(believed))


def _refusals(giver: MovedSessions, taker: MovedSessions) -> tuple[str, str]:
    """Return why each of them does not believe the other one, "" if it does."""
    with closing(link.listener(taker.port)) as listener:
        taking = gevent.spawn(_refusal_of_taker, listener, taker)
        tls = link.context(giver, server=False)
        try:
            link.connect("127.0.0.1", taker.port, interface="", tls=tls).close()
        except LinkError as error:
            return str(error), taking.get(timeout=_SECONDS)
        return "", taking.get(timeout=_SECONDS)


def _refusal_of_taker(listener: socket.socket, settings: MovedSessions) -> str:
    plain, _ = listener.accept()
    try:
        link.accepted(plain, link.context(settings, server=True)).close()
    except LinkError as error:
        return str(error)
    return ""


def test_two_members_believe_each_other(member: MovedSessions):
    """They may have one certificate."""
    assert _refusals(member, member) == ("", "")


def test_a_member_gives_nothing_to_a_stranger(member: MovedSessions, stranger: MovedSessions):
    """Although the stranger believes it."""
    refusal, _ = _refusals(member, stranger)
    assert "certificate verify failed" in refusal


def test_a_member_takes_nothing_from_a_stranger(member: MovedSessions, stranger: MovedSessions):
    """Although the stranger believes it."""
    _, refusal = _refusals(stranger, member)
    assert "certificate verify failed" in refusal
