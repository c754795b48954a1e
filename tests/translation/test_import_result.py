"""What `appliance import` prints: YAML with its origin, a word on each line, and proposals apart from it."""

import pytest
from support.translation.keepalived_files import PATH, translated

from appliance.model.loading.loading import load
from appliance.model.messages.problems import FilePosition
from appliance.translation.import_report import as_text, as_values
from appliance.translation.import_result import import_result
from appliance.translation.translation import LineOutcome, Outcome, Proposal, Translation
from appliance.translation.tree_builder import TreeBuilder

pytestmark = pytest.mark.pure


def _at(line: int, source: str = "haproxy.cfg") -> FilePosition:
    return FilePosition(line=line, column=5, source=source)


def _line(
    line: int,
    text: str,
    outcome: Outcome = Outcome.KEPT,
    reason: str | None = None,
    *,
    source: str = "haproxy.cfg",
) -> LineOutcome:
    return LineOutcome(place=_at(line, source), text=text, outcome=outcome, reason=reason)


def _haproxy(*more: LineOutcome, retries: int = 3) -> Translation:
    tree = TreeBuilder(_at(1))
    tree.put(("pools", "masters", "servers", "a"), {"weight": 2, "address": "192.0.2.1:6443"}, _at(5))
    tree.put(("pools", "masters", "retries"), retries, _at(4))
    tree.put(("api", "frontends", "main", "pool"), "masters", _at(3))
    tree.append(("api", "frontends", "main", "bind"), "[::]:6443", _at(2))
    lines = (
        _line(2, "bind   :::6443 v4v6"),
        _line(3, "default_backend masters"),
        _line(4, f"retries {retries}"),
        _line(5, "server a 192.0.2.1:6443 weight 2"),
    )
    better = Proposal(
        name="readyz",
        message="ask for /readyz",
        place=_at(5),
        example="check:\n  type: https\n  path: /readyz",
    )
    return Translation(
        root=tree.root, lines=(*lines, *more), proposals=(better, Proposal(name="n", message="m"))
    )


def _keepalived() -> Translation:
    source = "keepalived.conf"
    tree = TreeBuilder(_at(1, source))
    tree.put(("virtual_ips", "api", "router_id"), 51, _at(2, source))
    tree.put(("virtual_ips", "api", "interface"), "eth0", _at(3, source))
    tree.append(("virtual_ips", "api", "addresses"), "192.0.2.200/24", _at(4, source))
    lines = tuple(_line(at, f"line {at}", source=source) for at in (2, 3, 4))
    return Translation(root=tree.root, lines=lines)


def test_the_yaml_has_the_origin_of_each_entry():
    """Keys are in the order of the documentation, each with file, line and text; `check` accepts it."""
    result = import_result([_haproxy(), _keepalived()])

    assert result.ok
    assert result.yaml == (
        "# Made by `appliance import` from haproxy.cfg and keepalived.conf.\n"
        "\n"
        "api:\n"
        "  frontends:\n"
        "    main:\n"
        '      bind: ["[::]:6443"]                                 # haproxy.cfg:2: bind :::6443 v4v6\n'
        "      pool: masters                                       # haproxy.cfg:3: default_backend masters\n"
        "\n"
        "pools:\n"
        "  masters:\n"
        "    retries: 3                                            # haproxy.cfg:4: retries 3\n"
        "    servers:\n"
        "      a: {address: 192.0.2.1:6443, weight: 2}             "
        "# haproxy.cfg:5: server a 192.0.2.1:6443 weight 2\n"
        "\n"
        "virtual_ips:\n"
        "  api:\n"
        "    addresses: [192.0.2.200/24]                           # keepalived.conf:4: line 4\n"
        "    interface: eth0                                       # keepalived.conf:3: line 3\n"
        "    router_id: 51                                         # keepalived.conf:2: line 2\n"
    )
    assert load(result.yaml, source="c.yaml", number=1).errors == ()


def test_the_report_has_every_line_and_proposals_apart():
    """Each line has its outcome, the reason is below it, and what could be better comes last."""
    changed = _line(7, "timeout tunnel 1h", Outcome.CHANGED, "is the timeout of both sides")
    ignored = _line(9, "daemon", Outcome.IGNORED, "supervisord does that")

    assert as_text(import_result([_haproxy(changed, ignored)])).splitlines() == [
        "haproxy.cfg:2:5  kept     bind :::6443 v4v6",
        "haproxy.cfg:3:5  kept     default_backend masters",
        "haproxy.cfg:4:5  kept     retries 3",
        "haproxy.cfg:5:5  kept     server a 192.0.2.1:6443 weight 2",
        "haproxy.cfg:7:5  changed  timeout tunnel 1h",
        "                            is the timeout of both sides",
        "haproxy.cfg:9:5  ignored  daemon",
        "                            supervisord does that",
        "4 kept, 1 changed, 1 ignored, 0 refused",
        "",
        "Proposals, not applied in the YAML:",
        "  readyz: haproxy.cfg:5:5: ask for /readyz",
        "      check:",
        "        type: https",
        "        path: /readyz",
        "  n: m",
    ]


def test_a_refused_block_is_one_line():
    """The lines that are left out with a block are counted beside it; machines find each of them."""
    text = "virtual_server 192.0.2.9 53 {\nprotocol UDP\nreal_server 192.0.2.1 53 {\n}\n}\n"
    result = import_result([translated(text)])

    assert as_text(result).splitlines() == [
        f"{PATH}:1:1  refused  virtual_server 192.0.2.9 53 {{ ... and 4 lines",
        as_text(result).splitlines()[1],
        "0 kept, 0 changed, 4 ignored, 1 refused",
    ]
    assert len(as_values(result)["lines"]) == 5  # type: ignore[arg-type]  # a list


def test_json_has_the_same():
    """Machines find each line with its outcome, and what is wrong with all of them together."""
    values = as_values(import_result([_haproxy(retries=1000)]))

    assert (values["ok"], values["counts"]) == (
        False,
        {"kept": 4, "changed": 0, "ignored": 0, "refused": 0},
    )
    assert isinstance(values["lines"], list)
    assert values["lines"][0] == {
        "file": "haproxy.cfg",
        "line": 2,
        "column": 5,
        "text": "bind   :::6443 v4v6",
        "outcome": "kept",
        "reason": None,
    }
    assert isinstance(values["proposals"], list)
    assert [each["line"] for each in values["proposals"]] == [5, None]
    assert isinstance(values["problems"], list)
    assert [str(each) for each in values["problems"]] == [
        "haproxy.cfg:4:5: pools.masters.retries: must be 100 or less, not `1000`"
    ]


def test_what_check_would_refuse_is_no_success():
    """A value that the configuration does not have is told with its place in the file."""
    result = import_result([_haproxy(retries=1000)])

    assert not result.ok
    assert "error: haproxy.cfg:4:5: pools.masters.retries: must be 100 or less" in as_text(result)


def test_refused_lines_stand_above_the_configuration():
    """Whoever goes on with the YAML sees what it does not say; the problem is not told a second time."""
    long = _line(4, "stick-table " + "x" * 80 + "\x1b[31m", Outcome.REFUSED, "there are none")

    result = import_result([_haproxy(long, retries=1000)])

    assert (result.ok, result.problems, result.counts[Outcome.REFUSED]) == (False, (), 1)
    assert result.yaml.splitlines()[:6] == [
        "# Made by `appliance import` from haproxy.cfg.",
        "#",
        "# These lines were refused, and nothing below replaces them:",
        f"#   haproxy.cfg:4:5: stick-table {'x' * 48}...",
        "#     there are none",
        "",
    ]
    assert "\x1b" not in as_text(result)


def test_two_files_that_say_the_same_clash():
    """A key of both is a problem with both places."""
    result = import_result([_keepalived(), _keepalived()])

    assert not result.ok
    assert len(result.problems) == 3
    assert "keepalived.conf sets this too, on line 4" in str(result.problems[-1])


def test_a_line_is_quoted_once_for_the_entries_that_follow_each_other():
    """A server's line may say six things of its check."""
    tree = TreeBuilder(_at(1))
    for key, value, line in (("level", "debug", 3), ("format", "json", 3), ("connections", True, 4)):
        tree.put(("log", key), value, _at(line))

    result = import_result([Translation(root=tree.root, lines=(_line(3, "three"), _line(4, "four")))])

    comments = [line.partition("# ")[2] for line in result.yaml.splitlines()[3:]]
    assert comments == ["haproxy.cfg:3: three", "haproxy.cfg:3", "haproxy.cfg:4: four"]


def test_an_entry_without_a_known_line_has_its_place():
    """What a reader concludes from no line of its own still says where it was."""
    tree = TreeBuilder(_at(1))
    tree.put(("log", "level"), "debug", _at(3))

    result = import_result([Translation(root=tree.root, lines=(_line(1, "global"),))])

    assert result.yaml.endswith(f"{'log: {level: debug}':<56}  # haproxy.cfg:3\n")
    assert as_text(result) == "haproxy.cfg:1:5  kept     global\n1 kept, 0 changed, 0 ignored, 0 refused\n"
