"""The sample in the package of HAProxy on RHEL and Fedora: sections that serve nothing of anybody's."""

from collections.abc import Sequence
from typing import Final

from appliance.translation.haproxy.directives.section import Section

SAMPLE: Final = (
    "this is the package's sample (`frontend main`, `static`, `app`), whose servers are nobody's: take it out"
)

_BACKENDS: Final = ("static", "app")
_HERE: Final = "127.0.0.1:"


def sample_sections(sections: Sequence[Section]) -> Sequence[Section]:
    """Return the three sections of the sample; none where one is missing or has other servers."""
    named = {(each.kind.value, each.name): each for each in sections}
    main = named.get(("frontend", "main"))
    backends = [each for name in _BACKENDS if (each := named.get(("backend", name))) is not None]
    if main is None or len(backends) < len(_BACKENDS) or not all(map(_has_nobodys_servers, backends)):
        return ()
    used = {each.text(1) for each in main.lines if each.text(0) in {"use_backend", "default_backend"}}
    return (main, *backends) if used == set(_BACKENDS) else ()


def _has_nobodys_servers(backend: Section) -> bool:
    servers = [each.text(2) for each in backend.lines if each.text(0) == "server"]
    return bool(servers) and all(each.startswith(_HERE) for each in servers)
