"""The commands of `health` on its control socket: for `reload`, for operators, and for its status."""

from collections.abc import Mapping

from appliance.core.checks.checked_servers import UnknownServerError
from appliance.health.checks import HealthChecks
from appliance.health.kept_by_operator import KeptByOperator
from appliance.health.reports import HealthReports
from appliance.model.paths import Paths
from appliance.model.program_names import HEALTH
from appliance.model.server_states import AdminState, ServerState
from appliance.model.server_weights import WeightError, operator_weight
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.common_commands import ReloadCommands
from appliance.net.control.control_server import Call, Handler
from appliance.net.probing.tls_contexts import AuthorityError, TlsContexts
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good


class HealthCommands(ReloadCommands):
    """The commands by their names; those of a reload are in `ReloadCommands`."""

    def __init__(
        self, paths: Paths, checks: HealthChecks, kept: KeptByOperator, reports: HealthReports
    ) -> None:
        self._checks = checks
        self._states, self._weights = kept.states, kept.weights
        self._reports = reports
        super().__init__(
            HEALTH,
            paths,
            applied=lambda: checks.servers.snapshot,
            apply=self._apply_logged,
            differs=lambda proposed, _: checks.servers.differs(proposed),
            objections=lambda proposed: _authority_problems(proposed, checks.contexts),
        )

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            **super().handlers(),
            "set-state": self._set_state,
            "set-weight": self._set_weight,
        }

    def status(self) -> object:
        """Return the answer to `status`."""
        states = self._checks.servers.states
        return {
            **self.head(),
            "servers": {state.value: states[state] for state in ServerState},
            "unresolved": self._checks.resolver.unresolved(),
            "not_kept": self._reports.not_kept,
        }

    def _apply_logged(self, snapshot: Snapshot) -> None:
        self._checks.apply(snapshot)
        count = len(self._checks.servers.servers)
        self._reports.log.info("configuration-applied", configuration=snapshot.number, servers=count)

    def _set_state(self, call: Call) -> Answer:
        """Put a server into drain, maint or ready for an operator."""
        question = call.question
        servers = self._checks.servers
        try:
            admin = AdminState[question.text("state").upper()]
            checked = servers.find(question.text("pool"), question.text("server"))
        except KeyError:
            return bad(f"unknown state {question.text('state')!r}; known: ready, drain, maint")
        except UnknownServerError as error:
            return bad(str(error))
        # Saved before it takes effect: a crash in between must not undo what the operator sees.
        self._states.keep(servers.admins_with(checked.key, admin))
        event = self._checks.set_admin(checked.key, admin)
        done = {"pool": checked.pool, "server": checked.server.name, "state": admin.name.lower()}
        return good(**done, changed=event is not None, **self._states.warning())

    def _set_weight(self, call: Call) -> Answer:
        """Give a server another weight for an operator; 100% and the configured weight end that."""
        question = call.question
        servers = self._checks.servers
        try:
            given = operator_weight(question.text("weight"))
            checked = servers.find(question.text("pool"), question.text("server"))
        except (UnknownServerError, WeightError) as error:
            return bad(str(error))
        configured = checked.server.weight
        wanted = None if given.keeps(configured) else given
        self._weights.keep(servers.weights_with(checked.key, wanted))
        changed = self._checks.set_weight(checked.key, wanted)
        done = {"pool": checked.pool, "server": checked.server.name, "weight": str(given)}
        return good(**done, configured=configured, changed=changed, **self._weights.warning())


def _authority_problems(snapshot: Snapshot, contexts: TlsContexts) -> list[AnswerProblem]:
    """Return the problems of a snapshot's CA files, each with the first server that uses it."""
    users: dict[str, str] = {}
    for pool in snapshot.pools:
        for server in pool.servers:
            for check in server.check.whole if server.check else ():
                if check.verify is not None:
                    users.setdefault(check.verify, f"{pool.name}/{server.name}")
    found = []
    for file, user in users.items():
        try:
            contexts.inspect(file)
        except AuthorityError as error:
            found.append(AnswerProblem(message=f"{user}: {error}"))
    return found
