"""Each program, each facility of the kernel, each row of a table of promises and each page has its tests."""

import re
from typing import Final

import pytest
from support.documents.pages import DOCS, page
from support.documents.promises import (
    ALL,
    BEGIN,
    CONTRIBUTING,
    END,
    FULL,
    TEST,
    MarkerError,
    Promise,
    promises,
    promises_of,
    reasons,
    reasons_of,
    renewed,
    table,
)
from support.run.layers import DATA_PATH

from appliance.core.program_table import CONFIGURED

pytestmark = pytest.mark.pure

_PROGRAMS: Final = frozenset({*CONFIGURED, "reload", "worker", "tracker", "supervisord", "watchdog"})

_KERNEL: Final = frozenset(
    {
        "addresses (netlink)",
        "routes (netlink)",
        "interfaces (netlink)",
        "neighbours (netlink)",
        "lists of sockets (netlink)",
        "virtual MAC (macvlan)",
        "nftables",
        "conntrack",
        "flowtables",
        "packets led by MAC (nftables dup)",
        "connections that move to another node (TCP_REPAIR)",
        "raw sockets",
        "packet sockets",
        "socket filters (BPF)",
        "gratuitous ARP and unsolicited NA",
        "accept queues (SO_REUSEPORT)",
        "binding an address that is not here yet",
        "source ports of a node (IP_LOCAL_PORT_RANGE)",
        "descriptors over sockets (SCM_RIGHTS)",
        "who asks at a socket (SO_PEERCRED)",
        "splice",
        "TCP keepalive and user timeout",
        "the death of a process (pidfd)",
        "capabilities",
        "no new privileges",
        "real-time scheduling and locked memory",
    }
)

_WITHOUT_PROMISES: Final = frozenset({"docs/comparison.md"})
"""What it says of us is promised elsewhere."""

_OTHERS: Final = frozenset({"container", "data path", "rights"})
_BOTH: Final = ", compiled and plain"

_SOURCE: Final = """
import pytest

_REASON = "an hour"
_NEEDS = [pytest.mark.kernel, pytest.mark.needs("ip")]
pytestmark = _NEEDS

@pytest.mark.promise("program", "vrrp")
@pytest.mark.promise("survives", "vrrp")
def test_one():
    pass

@pytest.mark.slow(_REASON)
@pytest.mark.promise("program", "health")
def test_two():
    pass

@pytest.mark.full("a day")
@pytest.mark.promise("program", "dns")
def test_three():
    pass
"""


def _whats(subject: str, *tiers: str) -> set[str]:
    return {each.what for each in promises() if each.subject == subject and (not tiers or each.tier in tiers)}


def _rows(name: str, heading: str) -> set[str]:
    """Return the first cells of a page's table below a heading, without the first row's."""
    section = page(name).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| (.+?) \|", section, re.MULTILINE)[1:])


def test_the_table_is_the_one_of_the_markers():
    """`make pages` writes it anew."""
    text = CONTRIBUTING.read_text()
    assert text == renewed(text), "the table in CONTRIBUTING.md is not what the markers say: run `make pages`"


def test_the_table_has_every_test():
    """With its row, also where a promise has several."""
    named = set(re.findall(r"::(test_\w+)`", table()))
    assert named == {each.test.partition("::")[2] for each in promises()}


def test_subjects_are_known():
    """A slip would be a promise that nobody asks for."""
    pages = {f"docs/{each.name}" for each in DOCS.glob("*.md")}
    known = {"program", "kernel", "survives", *_OTHERS, *pages}
    assert {each.subject for each in promises()} - known == set()


def test_processes_and_kernel_are_real():
    """A test without a process or a socket does not see a broken program."""
    pure = [each for each in promises() if each.layer == "pure"]
    assert [each for each in pure if each.subject in {"program", "kernel", "survives"}] == []


def test_every_program_has_a_test():
    """In `make test`."""
    assert _PROGRAMS - _whats("program", TEST) == set()
    assert _whats("program") - _PROGRAMS == set()


def test_every_facility_of_the_kernel_has_a_test():
    """In `make test`."""
    assert _KERNEL - _whats("kernel", TEST) == set()
    assert _whats("kernel") - _KERNEL == set()


def test_every_row_of_what_survives_what_has_a_test():
    """In `make test`; a marker that names another row is of a table of yesterday."""
    rows = _rows("concepts", "What survives what")
    assert len(rows) > 10
    assert rows - _whats("survives", TEST) == set()
    assert _whats("survives") - rows == set()


def test_every_way_to_a_greater_program_has_a_test():
    """Each row of what a process without capabilities gets, and no other."""
    rows = _rows("security", "Lesser and greater programs")
    assert len(rows) >= 10
    assert rows - _whats("rights", TEST) == set()
    assert _whats("rights") - rows == set()


def test_container_and_data_path_have_tests():
    """The container's may be slow."""
    assert _whats("container")
    assert _whats("data path")


def test_what_is_promised_of_both_data_paths_is_tested_compiled_too():
    """By `make test`, in one of the rooms that `make test-compiled` runs."""
    both = [each for each in promises() if each.what.endswith(_BOTH)]
    assert both
    assert [each.test for each in both if not each.test.startswith(DATA_PATH)] == []
    assert {each.tier for each in both} == {TEST}


def test_every_page_has_a_test():
    """Each page that makes promises; and where one makes none, no marker names it."""
    pages = {f"docs/{each.name}" for each in DOCS.glob("*.md")}
    named = {each.subject for each in promises()}
    assert pages - named == _WITHOUT_PROMISES


def test_slow_tests_say_why():
    """Each has a reason, so that somebody can judge it later."""
    assert [each.place for each in reasons() if not each.text] == []


def test_markers_are_read():
    """Of a test and of its file, by whatever name the file has them."""
    assert list(promises_of(_SOURCE, name="tests/test_a.py")) == [
        Promise(subject="program", what="vrrp", test="tests/test_a.py::test_one", layer="kernel", tier=TEST),
        Promise(subject="survives", what="vrrp", test="tests/test_a.py::test_one", layer="kernel", tier=TEST),
        Promise(subject="program", what="health", test="tests/test_a.py::test_two", layer="kernel", tier=ALL),
        Promise(subject="program", what="dns", test="tests/test_a.py::test_three", layer="kernel", tier=FULL),
    ]
    assert {each.text for each in reasons_of(_SOURCE, name="tests/test_a.py")} == {"an hour", "a day"}


@pytest.mark.parametrize("marks", ["[*_NEEDS, {}]", "_NEEDS + [{}]", "(_NEEDS, {})"])
def test_a_slow_file_is_slow_in_all_its_tests(marks: str):
    """By `pytestmark`, however it is put together."""
    given = marks.format("pytest.mark.slow('an hour')")
    found = [*promises_of(_SOURCE.replace("= _NEEDS", f"= {given}"), name="tests/test_a.py")]
    assert [(each.layer, each.tier) for each in found] == [*[("kernel", ALL)] * 3, ("kernel", FULL)]


@pytest.mark.parametrize("marker", ["slow", "slow()", "slow('')", "slow(' ')", "slow(reason='')", "full('')"])
def test_a_reason_that_is_missing_is_seen(marker: str):
    """As a marker alone, without words, and of blanks."""
    (reason,) = reasons_of(f"import pytest\npytestmark = pytest.mark.{marker}\n", name="tests/test_a.py")
    assert (reason.place, reason.text) == ("tests/test_a.py:2", "")


def test_what_cannot_be_read_is_an_error():
    """A name in place of a string: whoever looks for the promise in the files would not find it."""
    with pytest.raises(MarkerError, match=r"tests/test_a.py:8: .* two strings"):
        list(promises_of(_SOURCE.replace('"program", "vrrp"', "_REASON, 'vrrp'"), name="tests/test_a.py"))


def test_a_page_without_its_marks_is_an_error():
    """Nothing is written to a place that is guessed."""
    assert renewed(f"a\n{BEGIN}b\n{END}c\n") == f"a\n{BEGIN}{table()}{END}c\n"
    for text in (f"a\n{BEGIN}", f"a\n{END}"):
        with pytest.raises(ValueError, match="has no lines"):
            renewed(text)
