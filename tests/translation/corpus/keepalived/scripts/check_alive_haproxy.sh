#!/bin/bash

# 0 where the daemon answers at its socket.

echo "show info" | socat unix-connect:/var/lib/kolla/haproxy/haproxy.sock stdio > /dev/null
