"""Which scripts ask whether HAProxy lives, and nothing else."""

import pytest

from appliance.translation.keepalived.commands.vrrp_script_commands import (
    asks_for_haproxy_alone,
    names_haproxy,
)

pytestmark = pytest.mark.pure

RESTARTS = """
START="/etc/init.d/haproxy start"
LOG=/var/log/check.log
RUNNING=`ps -C haproxy --no-header | wc -l`
date "+%Y %H:%M" >> $LOG
if [ $RUNNING -eq 0 ]; then
    $START >> $LOG 2>&1
    sleep 3
    if [ `ps -C haproxy --no-header | wc -l` -eq 0 ]; then
        killall keepalived
    fi
fi
"""
LOOPS = """
failed=0
for try in $(seq 1 3)
do
    found=$(pgrep haproxy)
    if [[ $found == "" ]]; then
        failed=$(expr $failed + 1)
        sleep 1
        continue
    else
        failed=0
        break
    fi
done
if [[ $failed != "0" ]]; then
    echo "systemctl stop keepalived"
    /usr/bin/systemctl stop keepalived
    exit 1
fi
"""


@pytest.mark.parametrize(
    "text",
    [
        RESTARTS,
        LOOPS,
        'echo "show info" | socat unix-connect:/var/lib/haproxy/haproxy.sock stdio > /dev/null',
        "/bin/kill -0 $(cat /run/haproxy/haproxy.pid)",
        "sudo kill -0 `cat /var/run/haproxy.pid`",
        "if [[ $(ps -C haproxy --no-header | wc -l) -eq 0 ]] ; then exit 1;fi",
        "if [[ $(netstat -nltp | grep haproxy) ]]; then exit 0; else exit 1; fi",
        'found=$(ps -ef | grep -c "[h]aproxy")\nif [ "$found" -eq 0 ]; then exit 1; fi',
        "[ -S /run/haproxy/admin.sock ] || exit 1",
        "failed() {\n echo $1\n exit 1\n}\npidof haproxy || failed gone",
        "systemctl is-active haproxy || systemctl restart haproxy",
        "docker ps | grep haproxy",
        "pidof haproxy || /usr/sbin/haproxy -f /etc/haproxy/haproxy.cfg",
        "kill -0 $(cat /run/haproxy.pid) || kill $(cat /run/keepalived.pid)",
    ],
)
def test_haproxy_alone(text: str):
    """Its process, socket, pid file or unit, with whatever is done where it is gone."""
    assert asks_for_haproxy_alone(text)
    assert names_haproxy(text)


@pytest.mark.parametrize(
    "text",
    [
        "pidof haproxy\ncurl -f http://localhost",
        "pidof haproxy && [ -e /run/serving ]",
        "netstat -nltp | grep 6443",
        "systemctl is-active nginx",
        "killall -0 keepalived",
        "/usr/local/bin/check-haproxy",
        "cat /run/serving",
        "pidof haproxy | mysql",
        "exit 0",
        "",
    ],
)
def test_anything_else(text: str):
    """Whoever asks for more, or for something else, is not taken for one of them."""
    assert not asks_for_haproxy_alone(text)


def test_names():
    """What a script only says, or says in a comment, is no question for HAProxy."""
    assert names_haproxy("check-haproxy")
    assert not names_haproxy("# haproxy\necho haproxy is gone\ncurl localhost")
