"""The election of virtual routers and what belongs to it: RFC 9568 without sockets and clocks."""
