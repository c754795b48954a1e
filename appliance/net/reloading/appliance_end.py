"""Whether a program that is told to end goes alone, or with the whole appliance."""

from appliance.model.paths import Paths
from appliance.net.reloading.supervisor_rpc import SupervisorClient, SupervisorUnavailable


def everything_ends(paths: Paths, *, without_supervisord: bool = True) -> bool:
    """Say whether supervisord stops everything; `without_supervisord` is the answer where none answers."""
    try:
        return SupervisorClient(paths.supervisor_socket).shutting_down()
    except SupervisorUnavailable:
        return without_supervisord
