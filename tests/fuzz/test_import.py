"""Damaged files of both kinds, imported together: the YAML says what the files say, and `check` agrees.

See support/fuzzing/fuzzing.py.
"""

from pathlib import Path
from typing import Final
from unicodedata import category

import pytest
from support.fuzzing.fuzzing import Target, fuzz
from support.translation.haproxy_files import NO_FILES

from appliance.model.document.document import read
from appliance.model.document.tree import plain
from appliance.model.loading.loading import load
from appliance.translation.combined_files import load_together, together
from appliance.translation.haproxy import reader as haproxy_reader
from appliance.translation.import_report import as_text, as_values
from appliance.translation.import_result import import_result
from appliance.translation.keepalived import reader as keepalived_reader
from appliance.translation.translation import HttpSections, Translation

pytestmark = pytest.mark.pure

CORPUS: Final = Path(__file__).parents[1] / "translation" / "corpus"
BETWEEN: Final = b"\n%%\n"
HAPROXY: Final = [path.read_bytes() for path in sorted((CORPUS / "haproxy").glob("*.cfg"))]
KEEPALIVED: Final = [path.read_bytes() for path in sorted((CORPUS / "keepalived").glob("*.conf"))]


def translations(data: bytes) -> tuple[Translation, Translation]:
    """Return what both files amount to, now and then without HTTP; keepalived's has nothing to include."""
    haproxy, _, keepalived = data.partition(BETWEEN)

    def given(_: str) -> bytes:
        return keepalived

    http: HttpSections = "skip" if len(data) % 2 else "refuse"
    cfg = haproxy_reader.translate(haproxy, source="h.cfg", environment={}, read=NO_FILES, http=http)
    return cfg, keepalived_reader.translate(
        "k.conf",
        read=given,
        matching=lambda _: (),
        hostname="node-a",
        environment={},
        programs=("proxy-api",),
    )


def imported(data: bytes) -> None:
    """Import both files; demand that what is printed is what was understood, and all problems have places."""
    both = translations(data)
    result = import_result(both)
    document, _ = together(None, both, source="")
    assert plain(read(result.yaml).root) == document.value
    loaded = load_together(None, both, source="", number=1)
    assert result.ok == (loaded.snapshot is not None)
    assert all((each.source and each.line) or "are not shown" in each.message for each in loaded.errors)
    if result.ok:
        assert load(result.yaml, source="c.yaml", number=1).errors == ()
    assert len(as_values(result)) == 6
    told = as_text(result).replace("\n", "")
    assert not any(category(each) in {"Cc", "Cf", "Cs"} for each in told)


IMPORT: Final = Target(
    name="import",
    run=imported,
    seeds=tuple(one + BETWEEN + other for one, other in zip(HAPROXY, KEEPALIVED * 2, strict=False)),
    words=(BETWEEN, b" \x1b[31m", b'"\\\n"', b" \xff ", b" ' ", b" $X ", b" {\n", b" }\n"),
)


def test_no_file_breaks_the_import(fuzz_seconds: float, fuzz_seed: int):
    """Whatever was understood of damaged files is printed, and read again alike."""
    assert fuzz(IMPORT, seconds=fuzz_seconds, seed=fuzz_seed) > 0
