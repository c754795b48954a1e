"""The election of virtual routers and related logic: RFC 9568 without sockets and clocks."""
