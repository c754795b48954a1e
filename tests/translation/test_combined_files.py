"""A configuration that several files say: their problems point into each of them."""

from dataclasses import replace

import pytest

from appliance.model.document.document import read
from appliance.model.messages.problems import FilePosition, Problem, Severity
from appliance.translation.combined_files import changes, left_to_haproxy, load_together
from appliance.translation.translation import LeftSection, LineOutcome, Outcome, Translation
from appliance.translation.tree_builder import TreeBuilder

pytestmark = pytest.mark.pure

HAPROXY = "/etc/haproxy/haproxy.cfg"
KEEPALIVED = "/etc/keepalived/keepalived.conf"
YAML = "appliance.yaml"


def _at(line: int, source: str = HAPROXY, column: int = 5) -> FilePosition:
    return FilePosition(line=line, column=column, source=source)


def _haproxy(*lines: LineOutcome) -> Translation:
    """Return what a reader makes of a frontend, its pool and one server."""
    tree = TreeBuilder(_at(1))
    tree.append(("api", "frontends", "main", "bind"), "[::]:9445", _at(2))
    tree.put(("api", "frontends", "main", "pool"), "masters", _at(3))
    tree.put(("pools", "masters", "servers", "master-0", "address"), "192.0.2.1:6443", _at(6))
    return Translation(root=tree.root, lines=lines)


def _keepalived() -> Translation:
    tree = TreeBuilder(_at(1, KEEPALIVED))
    tree.put(("virtual_ips", "api", "addresses"), ["192.0.2.200/24"], _at(2, KEEPALIVED))
    tree.put(("virtual_ips", "api", "interface"), "eth0", _at(3, KEEPALIVED))
    tree.put(("virtual_ips", "api", "router_id"), 51, _at(4, KEEPALIVED))
    return Translation(root=tree.root, lines=())


def _line(outcome: Outcome, reason: str | None = None) -> LineOutcome:
    return LineOutcome(place=_at(9), text="stick-table type ip", outcome=outcome, reason=reason)


def test_files_and_yaml_are_one_configuration():
    """Pools come from haproxy.cfg, virtual IPs from keepalived.conf, and the log from the YAML."""
    loaded = load_together(
        read("log: { level: debug }\n"), [_haproxy(), _keepalived()], source=YAML, number=7
    )

    assert loaded.problems == ()
    assert loaded.snapshot is not None
    assert loaded.snapshot.number == 7
    assert loaded.snapshot.log.level == "debug"
    assert [each.name for each in loaded.snapshot.pools] == ["masters"]
    assert [each.name for each in loaded.snapshot.virtual_routers] == ["api"]


def test_the_files_alone_are_enough():
    """Without YAML the files are the configuration."""
    loaded = load_together(None, [_haproxy()], source=YAML, number=1)

    assert loaded.problems == ()
    assert loaded.snapshot is not None


def test_the_drain_time_outside_wins():
    """OLD_HAPROXY_PS_FORCE_DEL_TIMEOUT counts as it does for the YAML alone."""
    loaded = load_together(None, [_haproxy()], source=YAML, number=1, drain="7")

    assert loaded.snapshot is not None
    assert loaded.snapshot.drain == 7.0


def test_a_key_that_two_files_say_names_both_places():
    """Whoever changes one of them has to know of the other."""
    text = "pools:\n  masters:\n    servers:\n      master-0: { address: '192.0.2.9:1' }\n    retries: 1\n"

    loaded = load_together(read(text), [_haproxy()], source=YAML, number=1)

    assert [str(each) for each in loaded.problems] == [
        (
            "appliance.yaml:4:19: pools.masters.servers.master-0.address: "
            "/etc/haproxy/haproxy.cfg sets this too, on line 6: remove it from one of them"
        )
    ]
    assert loaded.snapshot is None


def test_a_key_that_both_foreign_files_say_points_into_the_second():
    """The place is that of the later file; the message names the first one."""
    second = Translation(root=_keepalived().root, lines=())
    first = TreeBuilder(_at(1))
    first.put(("virtual_ips", "api", "router_id"), 51, _at(8))

    loaded = load_together(None, [Translation(root=first.root, lines=()), second], source=YAML, number=1)

    assert [str(each) for each in loaded.problems] == [
        (
            "/etc/keepalived/keepalived.conf:4:5: virtual_ips.api.router_id: "
            "/etc/haproxy/haproxy.cfg sets this too, on line 8: remove it from one of them"
        )
    ]


def test_refused_lines_and_wrong_values_are_told_at_once():
    """Each has its place in the foreign file, beside the errors of the YAML."""
    wrong = _haproxy(_line(Outcome.REFUSED, "there are no tables here: `balance: source` keeps a client"))
    assert isinstance(wrong.root.value, dict)
    tree = TreeBuilder(_at(1))
    tree.put(("pools", "masters", "retries"), 1000, _at(12))

    loaded = load_together(
        read("log: { level: loud }\n"), [wrong, Translation(root=tree.root, lines=())], source=YAML, number=1
    )

    assert [str(each) for each in loaded.problems] == [
        (
            "/etc/haproxy/haproxy.cfg:9:5: `stick-table type ip`: there are no tables here: "
            "`balance: source` keeps a client"
        ),
        "/etc/haproxy/haproxy.cfg:12:5: pools.masters.retries: must be 100 or less, not `1000`",
        "appliance.yaml:1:15: log.level: must be one of debug, info, warning, error, not `loud`",
    ]
    assert loaded.snapshot is None


def test_files_that_cannot_be_read_are_told_with_the_refused_lines():
    """What the rest amounts to without them is not judged: much of it would be a consequence."""
    refused = _haproxy(_line(Outcome.REFUSED, "why"))
    unread = Problem(message="cannot be read", source=YAML)

    loaded = load_together(None, [refused], source=YAML, number=1, unread=[unread], drain="x")

    assert loaded.snapshot is None
    assert [(each.source, each.line) for each in loaded.problems] == [
        (None, None),
        (HAPROXY, 9),
        (YAML, None),
    ]


def test_changed_lines_are_warnings_for_who_asks():
    """They are no problems of the configuration: `check` shows them, a reload does not."""
    changed = _haproxy(_line(Outcome.KEPT), _line(Outcome.IGNORED, "x"), _line(Outcome.CHANGED, "differs"))

    assert load_together(None, [changed], source=YAML, number=1).problems == ()
    assert [(each.severity, str(each)) for each in changes([changed])] == [
        (Severity.WARNING, "/etc/haproxy/haproxy.cfg:9:5: `stick-table type ip`: differs")
    ]


@pytest.mark.parametrize("text", ["auth_pass hunter2", "stats auth admin:hunter2"])
def test_a_refused_line_does_not_tell_its_password(text: str):
    """Problems are logged and shown to those who may only look."""
    line = LineOutcome(place=_at(9), text=text, outcome=Outcome.REFUSED, reason="why")

    (problem,) = load_together(None, [_haproxy(line)], source=YAML, number=1).problems

    assert "hunter2" not in str(problem)
    assert text.rpartition(" ")[0] in str(problem)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('http-check send hdr Authorization "Basic hunter2"', "http-check send hdr Authorization"),
        ("option httpchk GET /h HTTP/1.0\\r\\nauthorization:\\ Basic\\ hunter2", "httpchk GET /h HTTP/1.0"),
        ("http-check send hdr PROXY-AUTHORIZATION hunter2", "http-check send hdr PROXY-AUTHORIZATION"),
        ("http-check send hdr Cookie session=hunter2", "http-check send hdr Cookie"),
        ("http-check send hdr Set-Cookie:hunter2 Cookie hunter2", "http-check send hdr Set-Cookie"),
    ],
)
def test_a_refused_line_does_not_tell_its_headers(text: str, quoted: str):
    """Credentials of a check stand behind the name of a header, be it in the middle of a word."""
    line = LineOutcome(place=_at(9), text=text, outcome=Outcome.REFUSED, reason="why")

    (problem,) = load_together(None, [_haproxy(line)], source=YAML, number=1).problems

    assert "hunter2" not in str(problem)
    assert quoted in str(problem)


def test_what_is_left_to_haproxy_is_a_warning_and_a_sentence_for_status():
    """Only where clients come; of very many the first are named."""
    sections = [
        LeftSection(kind="frontend", name=f"f{at}", place=_at(at), addresses=(f"0.0.0.0:{at}",))
        for at in range(1, 24)
    ]
    translation = replace(_haproxy(), left=(LeftSection(kind="backend", name="b", place=_at(99)), *sections))

    [first, *others] = changes([translation])
    assert (first.severity, first.where, len(others)) == (Severity.WARNING, f"{HAPROXY}:1:5", 22)
    assert first.message == (
        "the frontend `f1` is left to HAProxy (`http: skip`): this appliance does not listen on 0.0.0.0:1"
    )
    told = [*left_to_haproxy([translation])]
    assert (told[0], told[20:]) == (first.message, ["3 more are left to HAProxy"])
    assert load_together(None, [translation], source=YAML, number=1).problems == ()
