"""HAProxy's statistics as CSV (management.txt 9.1), `show info` and `show servers state` as text."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_NAMES: Final = (
    "pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,dreq,dresp,ereq,econ,eresp,wretr,wredis,status,"
    "weight,act,bck,chkfail,chkdown,lastchg,downtime,qlimit,pid,iid,sid,throttle,lbtot,tracked,type,rate,"
    "rate_lim,rate_max,check_status,check_code,check_duration,hrsp_1xx,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,"
    "hrsp_other,hanafail,req_rate,req_rate_max,req_tot,cli_abrt,srv_abrt,comp_in,comp_out,comp_byp,comp_rsp,"
    "lastsess,last_chk,last_agt,qtime,ctime,rtime,ttime,agent_status,agent_code,agent_duration,check_desc,"
    "agent_desc,check_rise,check_fall,check_health,agent_rise,agent_fall,agent_health,addr,cookie,mode,algo,"
    "conn_rate,conn_rate_max,conn_tot,intercepted,dcon,dses,wrew,connect,reuse,cache_lookups,cache_hits,"
    "srv_icur,src_ilim,qtime_max,ctime_max,rtime_max,ttime_max,eint,idle_conn_cur,safe_conn_cur,"
    "used_conn_cur,need_conn_est,uweight,agg_server_status,agg_server_check_status,agg_check_status"
)
COLUMNS: Final = tuple(_NAMES.split(","))
"""The columns of HAProxy 2.6, in their order: some clients read them by position."""

_STATE_NAMES: Final = (
    "be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight "
    "srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state "
    "srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port "
    "srv_check_addr srv_agent_addr srv_agent_port"
)
STATE_COLUMNS: Final = tuple(_STATE_NAMES.split())
"""The columns of `show servers state`, version 1 of that format."""


def csv_text(rows: Iterable[Mapping[str, int | str]]) -> str:
    """Return the rows with a header; each line ends with a comma, as in HAProxy."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    text.write(f"# {','.join(COLUMNS)},\n")
    for row in rows:
        writer.writerow([*(row.get(column, "") for column in COLUMNS), ""])
    return text.getvalue()


def info_text(fields: Mapping[str, int | str]) -> str:
    """Return the fields of `show info`, one per line."""
    return "".join(f"{name}: {value}\n" for name, value in fields.items())


def servers_state_text(servers: Iterable[Sequence[int | str]]) -> str:
    """Return the table of `show servers state`; each server has a value for each of STATE_COLUMNS."""
    lines = ["1", f"# {' '.join(STATE_COLUMNS)}", *(" ".join(map(str, each)) for each in servers)]
    return "".join(f"{line}\n" for line in lines)


def duration_text(seconds: float) -> str:
    """Return a duration as HAProxy writes its uptime: `0d 0h01m05s`."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}d {hour}h{minute:02}m{second:02}s"
