"""User names by number."""

import pwd


def user_name(number: int) -> str | None:
    """Return the name of a user, None for a number without one: a container may run as any number."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return None
