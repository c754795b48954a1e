"""What a container does with broken inputs: one clear message each, and what image/README.md says."""

import pytest
from support.machines.container_site import Site
from support.machines.podman import Container, podman
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.image, pytest.mark.needs("podman", "runc", "mmdebstrap", "ip", root=True)]

_BROKEN = "api: {frontends: {kube-api: {bind: [nowhere], pool: none}}}\npools: {masters: {balance: sauce}}\n"

_NO_YAML = "api: [\n"


def _says(container: Container, *words: str, timeout: float = 60.0) -> None:
    def said() -> bool:
        log = container.log()
        return all(word in log for word in words)

    wait_until(
        said,
        what=f"it says {words}",
        timeout=timeout,
        pause=0.2,
    )


def _shows(container: Container, *words: str) -> None:
    """Wait until `appliance status` has a line with these words, and check that it finds something wrong."""

    def shown() -> bool:
        done = container.exec("appliance", "status", check=False)
        lines = (" ".join(line.split()) for line in done.stdout.splitlines())
        return done.returncode == 1 and any(all(word in line for word in words) for line in lines)

    wait_until(shown, what=f"status shows {words}", timeout=60.0, pause=0.3)


def test_broken_configuration(around: Site):
    """Without a last good copy every error is printed with its place, the next step, and it exits with 1."""
    with around.container(around.one, config=around.write(_BROKEN)) as container:
        assert container.exit_code() == 1
        *lines, step = container.log().splitlines()
        assert step.startswith("Next: fix it; `appliance check`")
        assert len(lines) >= 3
        assert all(line.startswith("/etc/appliance/appliance.yaml:") for line in lines)


@pytest.mark.slow("one more start of a container")
def test_unparsable_configuration(around: Site):
    """What is no YAML is one error with its place, and the next step."""
    with around.container(around.one, config=around.write(_NO_YAML)) as container:
        assert container.exit_code() == 1
        line, step = container.log().splitlines()
        assert line.startswith("/etc/appliance/appliance.yaml:2:1: not YAML: ")
        assert step.startswith("Next: ")


def test_missing_configuration(around: Site):
    """No file is one error that names it."""
    folder = around.write("")
    (folder / "appliance.yaml").unlink()
    with around.container(around.one, config=folder) as container:
        assert container.exit_code() == 1
        assert "/etc/appliance/appliance.yaml" in container.log()


@pytest.mark.slow("one more start of a container")
def test_unreadable_configuration(around: Site):
    """A file that only root may read is one error that says so."""
    folder = around.write(around.config())
    (folder / "appliance.yaml").chmod(0o600)
    with around.container(around.one, config=folder) as container:
        assert container.exit_code() == 1
        assert "ermission denied" in container.log()


@pytest.mark.promise("container", "a broken configuration: the last good copy starts")
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (_BROKEN, "sauce"),
        pytest.param(_NO_YAML, "not YAML", marks=pytest.mark.slow("one more start of a container")),
    ],
)
def test_last_good_copy(around: Site, broken: str, said: str):
    """With a last good copy in the state volume it starts from that, and says so in log and status."""
    state = ("--volume", f"{around.one.name}:/var/lib/appliance")
    try:
        with around.container(around.one, *state, config=around.write(around.config())) as container:
            around.serves(around.one.address)
            container.stop(30)
        with around.container(around.one, *state, config=around.write(broken)) as container:
            around.serves(around.one.address)
            assert container.log().count('"started-from-last-good"') == 1
            assert said in container.exec("appliance", "status", check=False).stdout
    finally:
        podman("volume", "rm", "--force", around.one.name)


@pytest.mark.slow("one more start of a container")
def test_port_in_use(around: Site):
    """A port that is taken is named, the other group serves, and the first one when the port is free."""
    config = around.write(around.config())
    taking = around.one.start(["python3", "-m", "http.server", "80", "--bind", "::"])
    wait_until(lambda: "80" in around.one.run(["ss", "-Hltn", "sport = :80"]), what="port 80 is taken")
    with around.container(around.one, config=config) as container:
        around.serves(around.one.address)
        _says(container, "[::]:80: address in use")
        _shows(container, "proxy-ingress", "[::]:80: address in use")
        taking.kill()
        around.serves(around.one.address, 80)


@pytest.mark.slow("one more start of a container")
def test_missing_capability_for_a_port(around: Site):
    """A low port without the right to it is named with the capability; high ports serve."""
    config = around.write(around.config())
    with around.container(
        around.one, "--read-only", "--cap-drop", "all", config=config, plain=True
    ) as container:
        around.serves(around.one.address)
        _says(container, "[::]:80: permission denied", "CAP_NET_BIND_SERVICE")
        _shows(container, "proxy-ingress", "CAP_NET_BIND_SERVICE")


@pytest.mark.promise("container", "a missing capability is named, the rest serves")
@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("NET_RAW", "NET_ADMIN"),
        pytest.param("NET_ADMIN", "NET_RAW", marks=pytest.mark.slow("one more start of a container")),
    ],
)
def test_missing_capability_for_virtual_ips(around: Site, given: str, missing: str):
    """Without one of the two that virtual IPs need log and status name it, once; the rest serves."""
    config = around.write(around.config())
    rights = ("--read-only", "--cap-drop", "all", "--cap-add", f"NET_BIND_SERVICE,{given}")
    with around.container(around.one, *rights, config=config, plain=True) as container:
        around.serves(around.one.address, 80)
        _says(container, f'"missing": ["CAP_{missing}"], "event": "capabilities-missing"')
        _shows(container, f"vrrp lacks CAP_{missing}: no virtual IP can be held here")
        assert container.log().count('"capabilities-missing"') == 1


@pytest.mark.slow("one more start of a container")
def test_root_without_the_right_to_become_its_user(around: Site):
    """Started as root without SETUID it does not go on as root: it says what to add, and exits with 1."""
    config = around.write(around.config())
    with around.container(around.one, "--user", "0", config=config) as container:
        assert container.exit_code() == 1
        assert "add the capabilities SETUID and SETGID" in container.log()


@pytest.mark.slow("one more start of a container")
def test_read_only_state(around: Site):
    """A state folder that cannot be written hinders nothing: log and status name what is not kept."""
    config = around.write(around.config())
    state = around.folder / "state"
    state.mkdir()
    with around.container(
        around.one, "--volume", f"{state}:/var/lib/appliance:ro", config=config
    ) as container:
        around.serves(around.one.address)
        _says(container, '"state-not-kept"', "/var/lib/appliance/last-good.json: Read-only file system")
        _shows(container, "/var/lib/appliance/last-good.json", "Read-only file system")


@pytest.mark.slow("waits for name resolution to fail")
def test_no_network(around: Site):
    """Without any interface everything runs; servers and virtual IPs are down and the status says why."""
    config = around.write(around.config())
    nothing = ("--network", "none", "--volume", f"{config}:/etc/appliance:ro")
    with Container(
        *nothing, "--cap-drop", "all", "--cap-add", "NET_BIND_SERVICE,NET_ADMIN,NET_RAW"
    ) as container:
        wait_until(
            lambda: container.exec("appliance", "alive", check=False).returncode == 0,
            what="it is alive",
            timeout=60,
            pause=0.5,
        )
        _says(container, '"server-down"')
        said = container.exec("appliance", "status", check=False)
        assert said.returncode == 1
        assert "eth0" in said.stdout
