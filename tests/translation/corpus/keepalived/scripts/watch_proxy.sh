#!/bin/bash
LOG=/var/log/keepalived-check.log
RUNNING=$(ps -C haproxy --no-header | wc -l)
date "+%F %T" >> $LOG
if [ $RUNNING -eq 0 ]; then
    systemctl start haproxy >> $LOG 2>&1
    sleep 3
    if [ $(ps -C haproxy --no-header | wc -l) -eq 0 ]; then
        echo "haproxy does not start" >> $LOG
        systemctl stop keepalived
    fi
fi
