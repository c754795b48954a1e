"""The notes of a release: its section of CHANGELOG.md, and how to verify what lies beside it."""

import re
from pathlib import Path
from typing import Final

_UNRELEASED: Final = "Unreleased"
_SECTION: Final = re.compile(r"^## \[(?P<name>[^\]]+)\].*$", re.MULTILINE)
_VERIFY: Final = """\
# lb-appliance {version}

{trust} What each file is, and how it is installed: docs/releases.md.

"""
_SIGNED: Final = """\
Verify before you install, with the file `release-signers` of a source that you trust: the repository, or a
release that is installed (`config/release-signers` in its package):

```console
$ ssh-keygen -Y verify -f release-signers -I lb-appliance -n lb-appliance -s SHA256SUMS.sig < SHA256SUMS
$ sha256sum --check --ignore-missing SHA256SUMS
```
"""
_NOT_SIGNED: Final = "**Not signed**: a trial, not a release."


class NotesError(Exception):
    """CHANGELOG.md has no section for the version."""


def notes(changelog: Path, version: str, *, signed: bool) -> str:
    """Return the notes; raises NotesError.

    What is not signed is a trial, and may have the section of what is not released yet.
    """
    text = changelog.read_text()
    section = _section(text, version) or (None if signed else _section(text, _UNRELEASED))
    if section is None:
        raise NotesError(f"{changelog}: no section `## [{version}]`: a release has one")
    return _VERIFY.format(version=version, trust=_SIGNED if signed else _NOT_SIGNED) + section


def _section(text: str, name: str) -> str | None:
    heads = list(_SECTION.finditer(text))
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        if head["name"] == name:
            return text[head.end() : after.start() if after else None].strip() + "\n"
    return None
