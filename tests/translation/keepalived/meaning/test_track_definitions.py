"""Scripts, processes and files that instances track: what each becomes, and for whom."""

import pytest
from support.translation.keepalived_files import BOTH, instance, mapping, told, translated, virtual_ips

from appliance.model.document.tree import Plain
from appliance.translation.translation import Outcome, Translation

pytestmark = pytest.mark.pure

_MARKER = "/var/run/keepalived/iptables-rule-exists"

C, I, R = Outcome.CHANGED, Outcome.IGNORED, Outcome.REFUSED  # noqa: E741  # as the outcomes are called


def tracked(
    block: str,
    *,
    kind: str = "track_script",
    mention: str = "chk",
    programs: tuple[str, ...] = BOTH,
    name: str = "VI",
    files: dict[str, str] | None = None,
) -> tuple[dict[str, Plain], Translation]:
    """Return the `track` of an instance that names `chk`, and the whole translation."""
    text = block + instance(f"{kind} {{ {mention} }}").replace("VI", name)
    translation = translated(text, programs=programs, files=files)
    return mapping(virtual_ips(translation)[name], "track"), translation


def script(*lines: str) -> str:
    """Return a `vrrp_script chk`."""
    return "\n".join(("vrrp_script chk {", *lines, "}", ""))


def test_script():
    """A script keeps its times, counts, weight and user."""
    block = script(
        "script \"/bin/check 'a b'\"",
        "interval 5",
        "timeout 2",
        "rise 2",
        "fall 3",
        "weight -4",
        "user nobody",
    )
    found, translation = tracked(block)
    assert found == {
        "chk": {
            "script": ["/bin/check", "a b"],
            "user": "nobody",
            "interval": "5s",
            "timeout": "2s",
            "rise": 2,
            "fall": 3,
            "weight": -4,
        }
    }
    assert told(translation) == []


def test_defaults_of_a_script():
    """Each second, and down is fault; the user is that of `global_defs`."""
    block = "global_defs { script_user keeper }\n" + script("script /bin/check", "weight 0")
    assert tracked(block)[0] == {"chk": {"script": ["/bin/check"], "user": "keeper", "interval": "1s"}}


@pytest.mark.parametrize(
    ("lines", "outcome", "reason"),
    [
        (("script check",), C, "`/usr/bin/env` searches for the command"),
        (("script /c", "timeout 5"), C, "checks never overlap"),
        (("script /c", "rise 5000"), C, "is limited to 1000 here"),
        (("script /c", "user a b"), C, "the group is the user's own"),
        (("script /c", "init_fail"), C, "before the first result"),
        (("script /c", "interval 0.5"), C, "a whole number from 1 to 4294, not `0.5`: keepalived uses 1 s"),
        (("script /c", "timeout 0"), C, "a whole number from 1 to 4294, not `0`: keepalived uses none"),
        (("script /c", "rise 0"), C, "not `0`: keepalived uses 1, and so does the appliance"),
        (("script /c", "weight 300"), C, "a whole number from -254 to 254, not `300`: keepalived uses 0"),
        (("script 'pidof haproxy'", "user a"), I, "no command is run"),
    ],
)
def test_scripts_that_change(lines: tuple[str, ...], outcome: Outcome, reason: str):
    """What differs is told."""
    _, translation = tracked(script(*lines))
    assert any(reason in why for _, _, why in told(translation, outcome))
    assert told(translation, R) == []


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((), "has no `script`"),
        (("script",), "`script` needs a command"),
        (("script /c a",), "put the command and all its arguments in quotes"),
        (("script /c", "weight"), "`weight` takes one number"),
        (("script /c", "weight 3 reverse"), "`reverse` is not supported"),
        (("script /c", "user"), "`user` needs a name"),
        (("script ''",), "must be a command"),
    ],
)
def test_scripts_that_are_refused(lines: tuple[str, ...], reason: str):
    """Each fault is told once: who tracks a check that is refused adds none."""
    text = script(*lines) + instance("track_script { chk }")
    (refused,) = told(translated(text), R)
    assert reason in refused[2]


def test_haproxy():
    """Who looks whether haproxy lives tracks our proxy, with its own times and weight."""
    block = script('script "killall -0 haproxy"', "interval 2", "weight 2")
    found, translation = tracked(block, programs=("proxy-ingress",))
    assert found == {"chk": {"program": "proxy-ingress", "interval": "2s", "weight": 2}}
    assert [line for line, _, _ in told(translation)] == [2]


def test_haproxy_without_a_proxy_of_ours():
    """Where the appliance takes keepalived's place only, it looks for HAProxy's process."""
    block = script('script "killall -0 haproxy"', "interval 2", "weight 2")
    found, translation = tracked(block, programs=())
    assert found == {"chk": {"process": "haproxy", "interval": "2s", "weight": 2}}
    assert "(`process: haproxy`)" in told(translation, C)[0][2]
    block = "vrrp_track_process chk {\nprocess haproxy\n}\n"
    found, translation = tracked(block, kind="track_process", programs=())
    assert found == {"chk": {"process": "haproxy"}}
    assert told(translation) == []


@pytest.mark.parametrize(
    ("name", "weight", "found"),
    [
        ("ocp4_API_0", 0, ["proxy-api"]),
        ("ocp4_INGRESS_0", 2, ["proxy-ingress"]),
        ("VIP_apps", 0, ["proxy-ingress"]),
        ("VIP_masters", 0, ["proxy-api"]),
        ("LB", 0, ["proxy-api", "proxy-ingress"]),
        ("LB", 5, ["proxy-api"]),
    ],
)
def test_which_proxy(name: str, weight: int, found: list[str]):
    """The name of the instance tells; where it does not, both have to serve, or the first has the weight."""
    tracks, _ = tracked(script("script 'pidof haproxy'", f"weight {weight}"), name=name)
    assert [mapping(each)["program"] for each in tracks.values()] == found


def test_urls():
    """Curl on this machine becomes a check of ours, with its own limit."""
    found, translation = tracked(
        script('script "timeout 0.9 curl -s https://localhost:6443/readyz"', "rise 3")
    )
    assert found == {
        "chk": {
            "http": "https://localhost:6443/readyz",
            "expect": "100-599",
            "interval": "1s",
            "timeout": "900ms",
            "rise": 3,
        }
    }
    assert "accepts any certificate" in told(translation)[0][2]
    found, _ = tracked(script("script 'nc -z -w 9 localhost 80'", "timeout 1"))
    assert found["chk"] == {"tcp": "localhost:80", "interval": "1s", "timeout": "1s"}
    found, _ = tracked(script("script 'pidof crio'"))
    assert found["chk"] == {"process": "crio", "interval": "1s"}


def test_scripts_in_files():
    """A script that asks one URL becomes that check; one that is not known stays."""
    block = script(
        'script "/etc/keepalived/check_apiserver.sh"', "interval 3", "weight -2", "fall 10", "rise 2"
    )
    content = "#!/bin/sh\ncurl -sfk --max-time 2 https://localhost:6443/healthz -o /dev/null || exit 1\n"
    path = "/etc/keepalived/check_apiserver.sh"
    found, _ = tracked(block, files={path: content})
    assert found["chk"] == {
        "http": "https://localhost:6443/healthz",
        "interval": "3s",
        "timeout": "2s",
        "fall": 10,
        "rise": 2,
        "weight": -2,
    }
    assert mapping(tracked(block)[0]["chk"])["script"] == [path]


def test_a_connection_of_bash():
    """`</dev/tcp/HOST/PORT` of keepalived's own samples is a connection, and never a command."""
    found, translation = tracked(script('script "</dev/tcp/127.0.0.1/80"', "weight -2"))
    assert found == {"chk": {"tcp": "127.0.0.1:80", "interval": "1s", "weight": -2}}
    assert told(translation, C)[0][2] == "the appliance connects to 127.0.0.1:80 itself (`tcp`)"
    assert tracked(script('script "< /dev/tcp/127.0.0.1/80"'))[0]["chk"] == {
        "tcp": "127.0.0.1:80",
        "interval": "1s",
    }


def test_scripts_that_ask_for_haproxy_in_their_own_way():
    """They would fail for ever beside us: here they ask for our proxy, and what is uncertain is told."""
    path = "/etc/keepalived/check.sh"
    block = script(f'script "{path}"', "weight 2")
    content = "#!/bin/bash\necho 'show info' | socat /run/haproxy.sock stdio\n"
    found, translation = tracked(block, programs=("proxy-api",), files={path: content})
    assert found == {"chk": {"program": "proxy-api", "interval": "1s", "weight": 2}}
    assert "`program`" in told(translation, C)[0][2]
    found, translation = tracked(block, files={path: f"{content}curl -f http://localhost\n"})
    assert mapping(found["chk"])["script"] == [path]
    assert "names HAProxy, which does not run alongside the appliance" in told(translation, C)[0][2]
    found, translation = tracked(block, programs=(), files={path: content})
    assert (mapping(found["chk"])["script"], told(translation, C)) == ([path], [])


def test_a_script_called_haproxys_that_cannot_be_read():
    """Its name tells what it asks, and the report says that nobody has read it."""
    block = script("script /usr/libexec/keepalived/haproxy_check.sh")
    found, translation = tracked(block, programs=("proxy-api",))
    assert found == {"chk": {"program": "proxy-api", "interval": "1s"}}
    assert told(translation, C)[0][2].startswith(
        "cannot be interpreted; by its name it checks that haproxy runs"
    )


def test_what_a_script_asks_where_the_virtual_ip_is_held():
    """Kubeadm's older script asks the virtual IP too, where it is here: the report says that we do not."""
    path = "/etc/keepalived/check_apiserver.sh"
    content = (
        "#!/bin/sh\ncurl -sk https://localhost:6443/ || exit 1\n"
        "if ip addr | grep -q 192.0.2.10; then\ncurl -sk https://192.0.2.10:6443/ || exit 1\nfi\n"
    )
    found, translation = tracked(script(f"script {path}"), files={path: content})
    assert mapping(found["chk"])["http"] == "https://localhost:6443/"
    assert "not also through the virtual IP while that is held" in told(translation, C)[0][2]


@pytest.mark.parametrize(("programs", "wanted"), [(BOTH, None), ((), _MARKER)])
def test_the_marker_of_openshifts_redirect(programs: tuple[str, ...], wanted: str | None):
    """In the place of its keepalived pod the file is wanted; beside our own proxies nobody would write it."""
    path = "/etc/keepalived/chk_ocp_script.sh"
    content = f"#!/bin/bash\ncurl -kLfs http://localhost:9444/haproxy_ready && [ -e {_MARKER} ]\n"
    block = script(f'script "/usr/bin/timeout 1.9 {path}"')
    found, translation = tracked(block, programs=programs, files={path: content})
    check = mapping(found["chk"])
    assert check["http"] == "http://localhost:9444/haproxy_ready"
    assert check.get("exists") == wanted
    assert _MARKER in told(translation)[0][2]


def test_processes():
    """A process is found by its name; haproxy is our own proxy."""
    block = "vrrp_track_process chk {\nprocess /usr/sbin/haproxy\nweight 10\nquorum 1\n}\n"
    found, _ = tracked(block, kind="track_process", name="API")
    assert found == {"chk": {"program": "proxy-api", "weight": 10}}
    block = "vrrp_track_process chk {\nprocess crio\ndelay 0.5\n}\n"
    found, translation = tracked(block, kind="track_process", mention="chk weight -3")
    assert found == {"chk": {"process": "crio", "weight": -3}}
    assert [outcome for _, _, outcome in told(translation, I)] == [
        "a process that starts or exits counts at the next check, without a delay"
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("process", "`process` needs a name"),
        ("process a b", "not by its parameters"),
        ("process a\nquorum 2", "one process is enough"),
        ("process a\nfull_command", "by its name here"),
        ("weight 1", "has no `process`"),
    ],
)
def test_processes_that_are_refused(line: str, reason: str):
    """What our check cannot do is refused."""
    text = f"vrrp_track_process chk {{\n{line}\n}}\n" + instance("track_process { chk }")
    (refused,) = told(translated(text), R)
    assert reason in refused[2]


def test_files():
    """The number in a file has the weight 1 by default; with the weight 0 any other number is a fault."""
    block = "track_file chk {\nfile /run/drained\ninit_file 0\n}\n"
    found, translation = tracked(block, kind="track_file")
    assert found == {"chk": {"file": "/run/drained", "weight": 1}}
    assert [line for line, _, _ in told(translation, C)] == [3]
    block = 'vrrp_track_file chk {\nfile "/run/drained"\nweight -5\n}\n'
    assert tracked(block, kind="track_file")[0]["chk"] == {"file": "/run/drained", "weight": -5}
    found, _ = tracked(block, kind="track_file", mention="chk weight 0")
    assert found["chk"] == {"file": "/run/drained"}
    text = "track_file chk { weight 3 }\n" + instance("track_file { chk }")
    assert told(translated(text), R) == [(1, 1, "has no `file`")]
    text = "track_file chk { file }\n" + instance("track_file { chk }")
    assert told(translated(text), R) == [(1, 18, "`file` needs a value")]


def test_checks_that_nobody_tracks():
    """They are never run, by keepalived neither; of one name the first counts, for each kind by itself."""
    text = script("script /c") + "track_file chk { file /f }\n" + instance("track_script { chk }")
    assert told(translated(text)) == [(4, 1, "nothing tracks it, so it is never run, as in keepalived")]
    text = script("script /c") + script("script /d") + instance("track_script { chk }")
    reason = "there is already a vrrp_script `chk`, which counts: keepalived ignores this one, too"
    translation = translated(text)
    assert told(translation, Outcome.CHANGED) == [(4, 13, reason)]
    assert told(translation, Outcome.IGNORED) == [
        (line, 1, "belongs to the second vrrp_script of this name") for line in (5, 6)
    ]
    assert mapping(virtual_ips(translation)["VI"], "track", "chk")["script"] == ["/c"]


def test_weight_of_a_mention():
    """An instance may give a check another weight."""
    found, _ = tracked(script("script /c", "weight 5"), mention="chk weight 7")
    assert mapping(found["chk"])["weight"] == 7
