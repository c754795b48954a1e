"""The placeholder for a password in an example: the example is printed, and ends up in tickets."""

from typing import Final

from appliance.model.snapshot.shared_ip import Neighbor

PASSWORD: Final = "REPLACE-ME"  # noqa: S105  # instead of one


def origin(neighbor: Neighbor) -> str:
    """Return where the password of a neighbour is, as part of a sentence."""
    return f" of `{neighbor.name}` is in {neighbor.password_file or 'the configuration'}"
