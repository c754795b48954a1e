"""The BGP daemon of a host, with `engine: table`: Debian's FRR or BIRD, with what the appliance prints."""

from support.announce.routers import Router
from support.network.namespaces import Node
from support.processes.waiting import wait_until
from support.run import tools


class HostBird(Router):
    """BIRD with the whole example as its file."""

    name = "bird"

    def __init__(self, node: Node, example: str) -> None:
        super().__init__(node)
        (self.root / "bird.conf").write_text(example.replace("log syslog all;", "log stderr all;"))
        bird = tools.path("bird") or "bird"
        self._start([bird, "-f", "-c", str(self.root / "bird.conf"), "-s", str(self.root / "ctl")], "log")


class HostFrr(Router):
    """FRR, into which the example is typed while it runs."""

    name = "frr"

    def __init__(self, node: Node, example: str) -> None:
        super().__init__(node)
        config, typed = self.root / "frr.conf", self.root / "example"
        config.write_text("hostname lb\n")
        typed.write_text(example)
        self._start_frr(config)
        sockets = [self.root / f"{name}.vty" for name in ("zebra", "bfdd", "bgpd")]
        wait_until(lambda: all(each.exists() for each in sockets), what="FRR takes commands", timeout=20.0)
        vtysh = tools.path("vtysh") or "vtysh"
        said = node.run([vtysh, "--vty_socket", str(self.root), "-f", str(typed)])
        assert "%" not in said, said
