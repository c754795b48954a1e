"""The real HAProxy reads the same: words are cut alike, and what it refuses is refused here, too."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from support.run.tools import path
from support.translation.haproxy_files import NO_FILES, TIMES, read

from appliance.translation.haproxy.reader import ConfigurationFile, translate, translate_all
from appliance.translation.haproxy.text.variables import Variables
from appliance.translation.haproxy.text.words import WordError, cut

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy")]

VARIABLES = {"A": "va", "L": "x y  z", "E": ""}
WORDS = (
    *(
        "zza",
        'zz"a b"',
        "zz'a b'",
        r"zz\ b",
        r"zz\xg1",
        r"zz\x4",
        r"zz\x41b",
        r"zz\a",
        r"zz\\",
        r"zz\"",
        r"zz\'",
    ),
    *(
        r'zz"\""',
        '''zz"'"''',
        """zz'"'""",
        'zz"a#b"',
        "zz#b",
        r"zz\#b",
        "zz #b",
        "zz$A",
        r"zz\$A",
        r'zz"\$A"',
    ),
    *(
        'zz"$A"',
        'zz"${A}"',
        'zz"${A-x}"',
        'zz"${N-x}"',
        'zz"${N-x y}"',
        'zz"${A"',
        'zz"$"',
        'zz"$1"',
        "zz'$A'",
    ),
    *('zz"${A[*]}"', 'zz"${L[*]}"', 'zz"${L}"', 'zz"${.LINE}"', 'zz"$.LINE"', 'zz"$.FOO"', 'zz"$.SECTION"'),
    *(
        'zz"a',
        "zz'a",
        r"zz\n",
        r"zz\t",
        r'zz"\x24A"',
        '"zz a" b',
        "zz\tb",
        "zz\vb",
        "zz\fb",
        "zz\rb",
        'zz""b',
    ),
    *(
        r"zz\{",
        r'zz"\{"',
        "zz" + " a" * 63,
        "zz" + " a" * 64,
        'zz"$A-"',
        'zz"${A-}"',
        'zz"${E-d}"',
        'zz"${A x}"',
    ),
    *(r"zz'\'", "zz;", "zzé", 'zz"${A[*]-x}"', 'zz"${N[*]-x y}"', 'zz"$A[*]"', '"zz', 'zz"${_x-1}"', "  zz"),
)


def judged(text: str, directory: Path) -> tuple[int, str]:
    """Return the exit status of `haproxy -c` for a file, and what it says."""
    file = directory / "haproxy.cfg"
    file.write_text(text, newline="")
    environment = {**VARIABLES, "PATH": os.environ["PATH"]}
    command = [str(path("haproxy")), "-c", "-f", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    return done.returncode, done.stderr


def test_words_are_cut_alike(tmp_path: Path):
    """HAProxy tells the first word of a line that it does not know: that is ours, or both refuse the line."""
    for text in WORDS:
        _, said = judged(f"global\n  {text}\n", tmp_path)
        known = re.search(r"unknown keyword '(.*?)' in 'global'", said, re.DOTALL)
        variables = Variables(VARIABLES, source=str(tmp_path / "haproxy.cfg"))
        variables.line, variables.section = 2, "global"
        try:
            ours = cut(f"  {text}", variables)[0].text
        except WordError:
            ours = None
        assert ours == (known[1] if known else None), text


CONDITIONS = (
    *(("0", 0), ("1", 1), ("-1", 1), ("+0", 0), ("", 0), ("!0", 1), ("!!1", 1), ("(1)", 1), ("1 && 0", 0)),
    *(("1||0&&0", 1), ("(1||0)&&0", 0), ("defined(A)", 1), ("defined(N)", 0), ("!defined(N)", 1)),
    *(('streq("$A",va)', 1), ("strneq(a,b)", 1), ("streq(a,b)", 0), ('"$E"', 0), ("0 || !0", 1)),
    *(("streq(a)", None), ("bogus(1)", None), ("abc", None), ("(1", None), ("1 &&", None), ("1 0", None)),
)


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS)
def test_conditions_are_judged_alike(condition: str, expected: int | None, tmp_path: Path):
    """The branch that HAProxy takes is ours; what it does not understand is refused."""
    text = f"global\n.if {condition}\n  zzyes\n.else\n  zzno\n.endif\n"
    _, said = judged(text, tmp_path)
    ours = " ".join(str(each.reason) for each in read(text, **VARIABLES).found.refused)
    taken = {True: 1, False: 0}.get("'zzyes'" in said) if "unknown keyword 'zz" in said else None
    assert taken == expected, said
    assert ("`zzyes`" in ours, "`zzno`" in ours) == (expected == 1, expected == 0)


BACKEND = "backend b\n  server s 10.0.0.1:6443 check\n"
MALFORMED = (
    "defaults\n  timeout client abc\n",
    "defaults\n  timeout connect\n",
    "defaults\n  timeout nothing 1s\n",
    "defaults\n  option nothing\n",
    "nothing\n",
    "globl\n",
    "frontend\n  bind *:6443\n",
    f"{TIMES}frontend f\n  bind *:70000\n  default_backend b\n{BACKEND}",
    f"{TIMES}frontend f\n  bind 10.0.0.1\n  default_backend b\n{BACKEND}",
    f"{TIMES}frontend f\n  bind *:90-80\n  default_backend b\n{BACKEND}",
    f"{TIMES}frontend f\n  bind *:80 nothing\n  default_backend b\n{BACKEND}",
    f"{TIMES}frontend f\n  bind *:80\n  default_backend nowhere\n",
    f"{TIMES}backend b\n  server s\n",
    f"{TIMES}backend b\n  server s/1 10.0.0.1:6443\n",
    f"{TIMES}backend b/1\n  server s 10.0.0.1:6443\n",
    f"{TIMES}backend b\n  server s 10.0.0.1:6443\n  stick on src\n",
    f"{TIMES}backend b\n  server s 10.0.0.1:99999\n",
    f"{TIMES}backend b\n  server s 10.0.0.1:80 weight 300\n",
    f"{TIMES}backend b\n  server s 10.0.0.1:80 chek\n",
    f"{TIMES}backend b\n  server s 10.0.0.1:80 inter x\n",
    f"{TIMES}backend b\n  server s 10.0.0.1:80 check check-ssl\n",
    f"{TIMES}{BACKEND}{BACKEND}",
    f"{TIMES}backend b\n  balance nothing\n",
    f"{TIMES}backend b\n  http-check expect nothing x\n",
    f"{TIMES}backend b\n  server s 10.0.0.1:6443 check",
    "global\n.if 1\n",
    "global\n.endif\n",
    "global\n.else\n",
    "global\n.if 1\n.else\n.else\n.endif\n",
    'global\n.alert "stop"\n',
    "defaults from nowhere\n",
)


@pytest.mark.parametrize("text", MALFORMED)
def test_what_haproxy_refuses_is_refused(text: str, tmp_path: Path):
    """A file that HAProxy would not start with is refused here, too."""
    status, said = judged(text, tmp_path)
    assert status == 1, said
    assert translate(text, source="haproxy.cfg", environment=VARIABLES, read=NO_FILES).refused, said


TIMES_WITH_MORE = ("1s[", "5ms;", "1m30s", "5usx", "5ux", "5x", "1.5s", "5S")


@pytest.mark.parametrize("time", TIMES_WITH_MORE)
def test_more_behind_a_time_is_taken_alike(time: str, tmp_path: Path):
    """Where HAProxy only warns of what stands behind a unit we only tell it, and refuse where it refuses."""
    text = f"{TIMES}backend b\n  timeout server {time}\n  server s 10.0.0.1:80 check inter {time}\n"
    status, said = judged(text, tmp_path)
    found = translate(text, source="haproxy.cfg", environment=VARIABLES, read=NO_FILES)
    assert (status != 1) is (found.refused == ()), said  # 2 is for warnings


PART = "{0} {1}\n  bind 127.0.0.1:{2}\n  server s 10.0.0.1:1\n"
PARTS = (
    {"a": TIMES, "b": PART.format("listen", "l", 1)},
    {"a": f"{TIMES}listen l\n", "b": "  bind 127.0.0.1:1\n"},
    {"a": f"{TIMES}.if 1\n", "b": ".endif\n"},
    {"a": PART.format("listen", "l", 1), "b": PART.format("listen", "l", 2)},
    {"a": "", "b": PART.format("listen", "l", 1)},
    {"a": "global\n  setenv P 1\n", "b": 'listen l\n  bind "127.0.0.1:$P"\n  server s 10.0.0.1:1\n'},
    {"b": f"{TIMES}listen l", "a": "\n"},
)


@pytest.mark.parametrize("parts", PARTS)
def test_several_files_are_read_alike(parts: dict[str, str], tmp_path: Path):
    """What HAProxy takes in this order of files is taken here, and what it refuses is refused."""
    arguments = []
    for name, text in parts.items():
        (tmp_path / name).write_text(text)
        arguments += ["-f", str(tmp_path / name)]
    command = [str(path("haproxy")), "-c", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    files = [ConfigurationFile(source=name, text=text) for name, text in parts.items()]
    found = translate_all(files, environment={}, read=NO_FILES)
    assert (done.returncode == 0) is (found.refused == ()), done.stderr
