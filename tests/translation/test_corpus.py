"""Files as people have them, and what becomes of every line: a report beside each file.

`REFRESH_REPORTS=1` writes the reports anew, and `git diff` then shows what is different.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from support.openshift.openshift_templates import RELEASES, haproxy_cfg, keepalived_conf
from support.translation.haproxy_files import NO_FILES

from appliance.model.loading.loading import load
from appliance.model.messages.problems import Problem
from appliance.translation.haproxy import reader as haproxy
from appliance.translation.import_result import ImportResult, import_result
from appliance.translation.keepalived import reader as keepalived
from appliance.translation.translation import HttpSections, LineOutcome, Outcome, Translation

pytestmark = pytest.mark.pure

CORPUS: Final = Path(__file__).parent / "corpus"
_REFRESH: Final = os.environ.get("REFRESH_REPORTS") == "1"
_PROGRAMS: Final = ("proxy-api",)
_BESIDE: Final = "beside.cfg"
_HOST: Final = "lb1"
_COMMENT: Final = re.compile(r"^\s*(?:[#!].*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A file, by the path of its report below the corpus, without the suffix; both readers take one each."""

    name: str
    text: str

    @property
    def is_haproxy(self) -> bool:
        """Whether it is a haproxy.cfg."""
        return self.name.startswith("haproxy/") or self.name.endswith(".haproxy")

    @cache  # noqa: B019  # the cases live as long as the module
    def result(self) -> ImportResult:
        """Return what `import` makes of it; a keepalived.conf has a haproxy.cfg beside it, as ever."""
        if self.is_haproxy:
            return import_result([self.translation()])
        release = self.name.removeprefix("openshift/").removesuffix(".keepalived")
        return import_result([_beside(release if release in RELEASES else "5.2"), self.translation()])

    @cache  # noqa: B019  # the cases live as long as the module
    def translation(self) -> Translation:
        """Read it."""
        if self.is_haproxy:
            http: HttpSections = "skip" if self.name.endswith("-skip") else "refuse"
            return haproxy.translate(
                self.text, source="haproxy.cfg", environment={}, read=NO_FILES, http=http
            )
        return keepalived.translate(
            "keepalived.conf",
            read=self._read,
            matching=_matching,
            hostname=_HOST,
            environment={},
            programs=_PROGRAMS,
        )

    def _read(self, name: str) -> bytes:
        if name.rpartition("/")[2] == "keepalived.conf":
            return self.text.encode()
        here = CORPUS / "keepalived"
        script = here / "scripts" / name.rpartition("/")[2]
        return (script if name.startswith("/") else here / name).read_bytes()


@cache
def _beside(release: str) -> Translation:
    return haproxy.translate(haproxy_cfg(RELEASES[release]), source=_BESIDE, environment={}, read=NO_FILES)


def _matching(pattern: str) -> list[str]:
    files = (CORPUS / "keepalived").glob("conf.d/*")
    names = sorted(str(each.relative_to(CORPUS / "keepalived")) for each in files)
    return [each for each in names if fnmatch(each, pattern.removeprefix("./"))]


def _cases() -> Iterator[Case]:
    for path in sorted(CORPUS.glob("haproxy/*.cfg")):
        yield Case(name=f"haproxy/{path.stem}", text=path.read_text())
    for path in sorted(CORPUS.glob("keepalived/*.conf")):
        yield Case(name=f"keepalived/{path.stem}", text=path.read_text())
    for name, release in RELEASES.items():
        yield Case(name=f"openshift/{name}.haproxy", text=haproxy_cfg(release))
        yield Case(name=f"openshift/{name}.keepalived", text=keepalived_conf(release))


CASES: Final = tuple(_cases())
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def report(result: ImportResult) -> str:
    """Return what became of a file: its lines, the problems of the result, and the names of proposals."""
    proposals = [each for each in result.proposals if each.place is None or each.place.source != _BESIDE]
    lines = [text for each in result.lines if each.place.source != _BESIDE for text in _line(each)]
    ending = ["", *(f"problem: {_problem(each)}" for each in result.problems if each.source != _BESIDE)]
    ending += [f"proposal: {_where(each.place)}{each.name}" for each in proposals]
    return "".join(
        f"{each}".rstrip() + "\n" for each in [f"ok: {str(result.ok).lower()}", "", *lines, *ending]
    )


def _line(line: LineOutcome) -> Iterator[str]:
    yield f"{_where(line.place)}{line.outcome:<8} {' '.join(line.text.split())}"
    if line.reason is not None:
        yield f"    {line.reason}"


def _problem(problem: Problem) -> str:
    return f"{problem.severity}: {problem}"


def _where(place: object) -> str:
    line, column = getattr(place, "line", 0), getattr(place, "column", 0)
    source = str(getattr(place, "source", ""))
    included = "" if source in {"haproxy.cfg", "keepalived.conf"} else f"{source}:"
    return f"{included}{line}:{column} " if line else ""


@by_name
def test_the_report_is_as_reviewed(case: Case):
    """What becomes of each line, and of the whole, is what somebody has read and found right."""
    path = CORPUS / f"{case.name}.report"
    found = report(case.result())
    if _REFRESH:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found)

    assert found == path.read_text()


@by_name
def test_no_line_is_without_an_outcome(case: Case):
    """Every line that says something has an outcome; what is not plainly kept has a reason."""
    lines = [
        each for each in case.translation().lines if each.place.source in {"haproxy.cfg", "keepalived.conf"}
    ]
    named = {each.place.line for each in lines}
    said = {at for at, line in enumerate(case.text.splitlines(), 1) if not _COMMENT.match(line)}

    # A brace that only ends a block says nothing.
    braces = {at for at, line in enumerate(case.text.splitlines(), 1) if set(line.split()) <= {"{", "}"}}
    assert said - braces - named == set()
    assert [each for each in lines if (each.outcome is not Outcome.KEPT) and not each.reason] == []


@by_name
def test_the_printed_configuration_is_accepted_as_told(case: Case):
    """Where `import` says that all is well, `check` has no error in what it printed."""
    result = case.result()
    loaded = load(result.yaml, source="appliance.yaml", number=1)

    assert not result.ok or loaded.errors == ()


def test_every_release_of_openshift_loads():
    """What OpenShift's static pods are given is taken as it is, by all releases."""
    cases = [each for each in CASES if each.name.startswith("openshift/")]

    assert [each.name for each in cases if not each.result().ok] == []


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Files before things of one kind, and how many of a hundred load untouched by the corpus's README.

    `of_the_rest` are those of a hundred that are not refused on purpose.
    """

    name: str
    on_record: int
    of_the_rest: int
    files: frozenset[str]

    @property
    def cases(self) -> list[Case]:
        """Its files; a keepalived.conf is not named by itself."""
        if self.name == "keepalived.conf":
            return [each for each in CASES if each.name.startswith("keepalived/")]
        return [each for each in CASES if each.name.removeprefix("haproxy/") in self.files]


_README: Final = (CORPUS / "README.md").read_text()
_PERCENT: Final = r"(?:([0-9]+) %|-)"
_ROW: Final = re.compile(
    rf"^\| ([^|]+) \| (?:[0-9]+ %|-) \| {_PERCENT} \| {_PERCENT} \| (.+) \|$", re.MULTILINE
)
_REFUSED: Final = dict(re.findall(r"^\| ([a-z0-9-]+) \| (yes|no) \| .+ \|$", _README, re.MULTILINE))
"""Whether each file that does not load untouched is refused on purpose."""

FAMILIES: Final = tuple(
    Family(
        name=name, on_record=int(all_ or 0), of_the_rest=int(rest or 0), files=frozenset(files.split(", "))
    )
    for name, all_, rest, files in _ROW.findall(_README)
)


@pytest.mark.parametrize("family", FAMILIES[:-1], ids=lambda family: family.name)
def test_no_fewer_load_untouched_than_on_record(family: Family, record_property: Callable[[str, str], None]):
    """Of each family as many files as ever need no word from their owner; the run's end says how many."""
    refused = [each.name for each in family.cases if not each.result().ok]
    on_purpose = [each for each in refused if _REFUSED.get(each.partition("/")[2]) == "yes"]
    count, rest = len(family.cases), len(family.cases) - len(on_purpose)
    percent = 100 * (count - len(refused)) // count
    of_the_rest = 100 * (count - len(refused)) // rest
    said = f"{percent} % of {count} files load untouched, {of_the_rest} % of {rest} not refused on purpose"
    record_property("said", f"corpus, {family.name}: {said}")

    assert percent >= family.on_record, refused
    assert of_the_rest >= family.of_the_rest, refused


def test_each_file_that_is_refused_is_told():
    """With what is refused in it; what only shows the rarest lines, of no family, is not counted."""
    counted = [each for family in FAMILIES[:-1] for each in family.cases]

    assert sorted(each.name.partition("/")[2] for each in counted if not each.result().ok) == sorted(_REFUSED)


def test_each_file_is_of_one_family():
    """None is counted twice, and none is forgotten."""
    every = sorted(name for family in FAMILIES for name in family.files)
    names = sorted(path.stem for path in CORPUS.glob("haproxy/*.cfg"))

    assert every == sorted([*names, "all of `keepalived/`"])


def test_the_corpus_is_as_large_as_it_is_said_to_be():
    """At least 25 files of HAProxy and 15 of keepalived, each with its origin in the table."""
    files = {
        kind: sorted(path.stem for path in CORPUS.glob(f"{kind}/*.c*f*") if path.is_file())
        for kind in ("haproxy", "keepalived")
    }

    assert (len(files["haproxy"]) >= 25, len(files["keepalived"]) >= 15) == (True, True)
    assert [each for names in files.values() for each in names if f"| {each} |" not in _README] == []
