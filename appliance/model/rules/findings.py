"""Short forms of the three findings that rules make: an error at a value, one at a key, and a warning."""

from appliance.model.messages.problems import Finding, FindingTarget, Path, Severity


def error(path: Path, message: str, *touches: Path) -> Finding:
    """Return an error that points at the value; `touches` are the paths that led to it."""
    return Finding(path=path, message=message, touches=touches)


def key_error(path: Path, message: str, *touches: Path) -> Finding:
    """Return an error that points at the key, because the key should not be there."""
    return Finding(path=path, message=message, spot=FindingTarget.KEY, touches=touches)


def warning(path: Path, message: str, *touches: Path) -> Finding:
    """Return a warning: the configuration is accepted, but probably not intended."""
    return Finding(path=path, message=message, severity=Severity.WARNING, touches=touches)
