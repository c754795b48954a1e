"""The page in a real browser: what it shows, what each button does, and that it complains of nothing."""

import json
import os
import re
import signal
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection

import pytest
from support.network.ports import free_port
from support.peers.chromium import Chromium, Tab
from support.processes.waiting import wait_until
from support.stats.stats_site import StatsSite, stats_site

from appliance.wire import history_ring
from appliance.wire.history_ring import FrontendMinute, Minute, PoolMinute

pytestmark = [
    pytest.mark.programs,
    pytest.mark.needs("chromium"),
    pytest.mark.slow("a whole appliance and its readers"),
]

_AUTH: Mapping[str, object] = {"auth": {"user": "admin", "password": "s3cret"}, "admin": "on"}


@pytest.fixture(scope="module")
def site() -> Iterator[StatsSite]:
    """Run three masters, an appliance, and its page, on which who has a password may change servers."""
    with stats_site(workers=1) as made:
        assert made.cluster.appliance.reload(made.config(**_AUTH))["ok"]
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    """Run one browser for all tests."""
    with Chromium() as running:
        yield running


def opened(browser: Chromium, site: StatsSite, *, path: str = "/", **how: int) -> Tab:
    """Return a tab with the page, as the operator sees it."""
    tab = browser.tab(**how)
    tab.go(f"http://admin:s3cret@127.0.0.1:{site.port}{path}")
    return tab


def ask_master(site: StatsSite) -> None:
    """Have one request answered through the appliance."""
    client = HTTPConnection("127.0.0.1", site.cluster.port, timeout=30)
    client.request("GET", "/readyz", headers={"Connection": "close"})
    assert client.getresponse().read()
    client.close()


def colours(tab: Tab) -> tuple[int, int]:
    """Return how bright paper and ink of the page are, by the sum of their parts."""
    style = tab.value("(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))")
    assert isinstance(style, list)
    paper, ink = (sum(map(int, re.findall(r"\d+", each)[:3])) for each in style)
    return paper, ink


def row(server: str, state: str) -> str:
    """Return the expression for whether the page shows a server in a state."""
    rows = f"""[...document.querySelectorAll("#pool-masters tr.{state} th")]"""
    return f"""{rows}.some((each) => each.innerText.startsWith("{server}"))"""


def test_all_is_well(site: StatsSite, browser: Chromium):
    """A green verdict, all servers with their state in words, the configuration and the programs."""
    tab = opened(browser, site)
    tab.until_text("Serving.", "#verdict.well h1")
    for each in site.cluster.masters:
        assert f"{each.name} 127.0.0.1:{each.port} up" in tab.text("#pool-masters")
    assert "L7OK/200" in tab.text("#pool-masters")
    assert "kube-api" in tab.text("#frontends")
    assert "accepted" in tab.text("#configuration")
    assert "proxy-api running" in tab.text("#programs")
    assert tab.complaints == []


def test_a_server_that_goes_down(site: StatsSite, browser: Chromium):
    """The page says so by itself, with time and reason, and says when it is over."""
    tab = opened(browser, site)
    tab.until_text("Serving.", "#verdict.well h1")
    master = site.cluster.masters[0]
    master.ready(500)
    try:
        tab.until_text("Serving.", "#verdict.attention h1")
        said = tab.text("#verdict")
        assert re.search(rf"1 of 3 masters is down since \d\d:\d\d: L7STS/500 \({master.name}\)\.", said), (
            said
        )
        assert "down" in tab.text("#pool-masters tr.down")
        assert str(tab.value("document.title")).startswith("Attention")
        tab.until_text(f"server-down masters/{master.name}", "#events tr.warning")
    finally:
        master.ready(200)
    tab.until_text("Serving.", "#verdict.well h1")
    tab.until_text(f"server-up masters/{master.name}", "#events")
    assert tab.complaints == []


def test_every_server_down(site: StatsSite, browser: Chromium):
    """That is an alarm."""
    tab = opened(browser, site)
    for each in site.cluster.masters:
        each.ready(500)
    try:
        tab.until_text("Not serving.", "#verdict.ill h1")
        assert "Pool masters has no server up." in tab.text("#verdict")
    finally:
        for each in site.cluster.masters:
            each.ready(200)
    tab.until_text("Serving.", "#verdict.well h1")
    assert tab.complaints == []


def test_every_button_of_a_server(site: StatsSite, browser: Chromium):
    """From each state into the two others, and back."""
    tab = opened(browser, site)
    tab.until_text("Serving.", "#verdict.well h1")
    steps = ("drain", "maint", "ready", "maint", "drain", "ready")
    for step in steps:
        tab.click(f'#pool-masters button[value="{step} master-1"]')
        tab.until(row("master-1", "up" if step == "ready" else step))
        assert tab.value("location.pathname") == "/haproxy_stats"
    events = site.cluster.appliance.events("state-set")
    assert [each["state"] for each in events if each.get("by") == "page"][-6:] == list(steps)
    assert tab.complaints == []


def test_without_scripts(site: StatsSite, browser: Chromium):
    """Everything is there, and the buttons work."""
    tab = browser.tab()
    tab.without_scripts()
    tab.go(f"http://admin:s3cret@127.0.0.1:{site.port}/")
    assert tab.value("typeof refresh") == "undefined"
    for step, state in (("drain", "drain"), ("ready", "up")):
        tab.click(f'#pool-masters button[value="{step} master-2"]')
        tab.until(row("master-2", state))
        assert tab.value("location.pathname") == "/haproxy_stats"
    assert tab.complaints == []


def test_a_narrow_screen(site: StatsSite, browser: Chromium):
    """Nothing is wider than a telephone, and what counts is there."""
    tab = opened(browser, site, width=360, height=700)
    tab.until_text("Serving.", "#verdict h1")
    assert tab.value("document.documentElement.scrollWidth") == 360
    too_wide = """[...document.querySelectorAll("main *")]
        .filter((each) => each.getBoundingClientRect().right > 361).map((each) => each.outerHTML)"""
    assert tab.value(too_wide) == []
    assert "L7OK/200" in tab.text("#pool-masters")
    assert tab.complaints == []


def test_light_and_dark(site: StatsSite, browser: Chromium):
    """As the operator's desktop is."""
    light, dark = opened(browser, site), opened(browser, site, dark=True)
    paper, ink = colours(light)
    assert (paper > 600, ink < 200) == (True, True)
    paper, ink = colours(dark)
    assert (paper < 200, ink > 600) == (True, True)
    assert light.complaints == dark.complaints == []


def test_silence_is_told(site: StatsSite, browser: Chromium):
    """A page that gets no answer says that it is old, and goes on when there is one again."""
    tab = opened(browser, site)
    tab.until_text("Serving.", "#verdict.well h1")
    appliance = site.cluster.appliance
    assert appliance.reload(site.cluster.config())["ok"]  # without the page
    tab.until("!document.querySelector('#silence').hidden")
    assert "No answer since" in tab.text("#silence")
    assert appliance.reload(site.config(**_AUTH))["ok"]
    tab.until("document.querySelector('#silence').hidden")


def test_the_last_hours(site: StatsSite, browser: Chromium):
    """What is in the file is drawn, also by a program that was started anew; shares have bars."""
    appliance = site.cluster.appliance
    now = wait_until(
        lambda: json.loads(site.page("/api/v1/status", user="admin:s3cret"))["at"], what="a time"
    )
    figures = FrontendMinute(connections=600, sessions=30, failed=0, bytes=6_000_000)
    pid = appliance.program_pid("stats")
    assert pid
    os.kill(pid, signal.SIGSTOP)  # it does not write meanwhile
    file = bytearray(history_ring.empty())
    for number in range(int(now // 60) - 30, int(now // 60)):
        at = history_ring.place(number)
        pools = {"masters": PoolMinute(600, 30, 0, 3)}
        minute = Minute(number=number, total=figures, frontends={"kube-api": figures}, pools=pools)
        file[at : at + history_ring.SLOT_BYTES] = history_ring.encode(minute)
    appliance.paths.history.write_bytes(bytes(file))
    appliance.wait_for_restart("stats", appliance.kill("stats"))
    tab = opened(browser, site)
    tab.until_text("Serving.", "#verdict h1")
    drawn = """[...document.querySelectorAll("svg.spark path")].filter((each) => each.getTotalLength() > 5)"""
    assert tab.value(f"{drawn}.length") == 6  # four of all together, one of the frontend, one of the pool
    label = str(tab.value("""document.querySelector("#frontends svg").getAttribute("aria-label")"""))
    assert "at most 600" in label
    bars = """[...document.querySelectorAll("#pool-masters .bar rect")].map((each) => each.getBBox().width)"""
    wait_until(
        lambda: ask_master(site) or tab.value(f"{bars}.length == 3 && {bars}.every((each) => each > 20)"),
        what="each of three servers has a bar of a third",
        timeout=60.0,
        pause=0.3,
    )
    assert tab.complaints == []


def test_the_last_good_configuration(browser: Chromium):
    """Started with a file that has an error: what runs instead is said, and what is wrong in the file."""
    with stats_site(workers=1, masters=1) as other:
        appliance = other.cluster.appliance
        assert appliance.reload(other.config(**_AUTH))["ok"]
        appliance.stop(patience=30.0)
        appliance.write({**other.config(**_AUTH), "nonsense": 1})
        appliance.start()
        tab = opened(browser, other)
        tab.until_text("The last good configuration runs since", "#verdict.attention")
        assert "nonsense" in tab.text("#verdict .errors")
        assert tab.complaints == []


def test_a_thousand_servers(browser: Chromium):
    """They are a page of a bounded size, with those that need somebody on top; `bench` has the time."""
    with stats_site(workers=1, masters=1) as many:
        config = many.config(**_AUTH)
        servers = {f"server-{each}": {"address": f"127.0.0.1:{free_port()}"} for each in range(1000)}
        config["pools"] = {"masters": {"check": False, "servers": servers}}
        assert many.cluster.appliance.reload(config)["ok"]
        many.cluster.appliance.command("drain", "masters/server-500")
        tab = opened(browser, many)
        tab.until_text("1 of 1000 masters is draining", "#verdict")
        assert "999 more up" in tab.text("#pool-masters")
        assert len(many.page("/", user="admin:s3cret")) < 700_000
        elements = tab.value("document.querySelectorAll('*').length")
        assert isinstance(elements, int)
        assert elements < 16_000
        tab.click("#pool-masters summary")
        tab.until("document.querySelector('#pool-masters tr.up')?.checkVisibility()")
        tab.click("""#pool-masters button[value="maint server-999"]""")
        tab.until_text("1 of 1000 masters is in maintenance", "#verdict")
        assert tab.complaints == []
