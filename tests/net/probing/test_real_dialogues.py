"""Checks that talk with real servers of five protocols, made of a haproxy.cfg, beside a real HAProxy."""

import contextlib
from typing import Final

import pytest
from support.health.side_by_side import judged
from support.network.ports import free_port
from support.peers import databases
from support.peers.slapd import slapd
from support.peers.smtpd import STRANGER, smtpd

from appliance.model.check_results import CheckResult

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy")]

PASSWORD: Final = "example-only"  # noqa: S105  # of a server that lives for one test
MASTER: Final = rf"""option tcp-check
  tcp-check send "AUTH {PASSWORD}\r\n"
  tcp-check expect string +OK
  tcp-check send "INFO replication\r\n"
  tcp-check expect string role:master
  tcp-check send QUIT\r\n
  tcp-check expect string +OK"""


@pytest.mark.needs("redis-server")
def test_redis():
    """The master passes, a replica does not, nor does one that wants a password which nobody gives."""
    with contextlib.ExitStack() as stack:
        master = stack.enter_context(databases.redis(password=PASSWORD))
        replica = stack.enter_context(databases.redis(password=PASSWORD, master=master))
        found = judged(
            {
                "master": (MASTER, master),
                "replica": (MASTER, replica),
                "unasked": ("option redis-check", master),
                "gone": ("option redis-check", free_port()),
            },
            timeout="3s",
        )

    assert found.ours == found.theirs == {"master": True, "replica": False, "unasked": False, "gone": False}
    assert "role:slave" in found.outcomes["replica"].detail
    assert "NOAUTH" in found.outcomes["unasked"].detail
    assert found.outcomes["gone"].result is CheckResult.L4CON


@pytest.mark.needs(databases.POSTGRES, "setpriv")
def test_postgres():
    """Who is trusted and who has to give a password is let in so far; who is rejected is not."""
    with databases.postgres() as port:
        found = judged(
            {user: (f"option pgsql-check user {user}", port) for user in ("haproxy", "careful", "nobody")},
            timeout="3s",
        )

    assert found.ours == found.theirs == {"haproxy": True, "careful": True, "nobody": False}
    assert "pg_hba.conf rejects" in found.outcomes["nobody"].detail


@pytest.mark.needs("mariadbd")
def test_mariadb():
    """A login and a farewell leave no trace; the greeting alone is one of an old client."""
    with databases.mariadb() as port:
        found = judged(
            {
                "login": ("option mysql-check user haproxy", port),
                "old-login": ("option mysql-check user haproxy pre-41", port),
                "greeting": ("option mysql-check", port),
            },
            timeout="3s",
        )

    assert found.ours == found.theirs
    assert found.ours["login"]
    assert found.ours["greeting"]


@pytest.mark.needs("slapd")
def test_slapd():
    """An anonymous bind passes, unless the server wants to know who asks, or wants TLS first."""
    with slapd() as everybody, slapd("disallow bind_anon") as known, slapd("security tls=1") as encrypted:
        ports = {"everybody": everybody, "known": known, "encrypted": encrypted, "gone": free_port()}
        found = judged(
            {name: ("option ldap-check", port) for name, port in ports.items()},
            timeout="3s",
        )

    assert (
        found.ours == found.theirs == {"everybody": True, "known": False, "encrypted": False, "gone": False}
    )
    assert "anonymous bind disallowed" in found.outcomes["known"].detail
    assert found.outcomes["gone"].result is CheckResult.L4CON


@pytest.mark.needs("smtpd", "unshare", "mount", root=True)
def test_smtpd():
    """Whom the server greets passes, by an answer of one line or of many; whom it refuses does not."""
    with smtpd() as port:
        found = judged(
            {
                "plain": ("option smtpchk", port),
                "helo": ("option smtpchk HELO lb.example.com", port),
                "ehlo": ("option smtpchk EHLO lb.example.com", port),
                "no-helo": (f"option smtpchk HELO {STRANGER}", port),
                "no-ehlo": (f"option smtpchk EHLO {STRANGER}", port),
                "gone": ("option smtpchk", free_port()),
            },
            timeout="3s",
        )

    assert found.ours == found.theirs
    assert {name for name, passed in found.ours.items() if passed} == {"plain", "helo", "ehlo"}
    assert "no strangers" in found.outcomes["no-helo"].detail
    assert "no strangers" in found.outcomes["no-ehlo"].detail
    assert found.outcomes["gone"].result is CheckResult.L4CON
