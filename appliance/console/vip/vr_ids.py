"""`appliance vr-ids`: the output of `runtimecfg vr-ids`, for scripts and for planning a shared segment."""

import json

import click

from appliance.model.router_ids import ClusterNameError, router_ids


@click.command("vr-ids", epilog="Example: appliance vr-ids ocp4")
@click.argument("cluster")
@click.option("--json", "as_json", is_flag=True, help='Print {"cluster", "api", "ingress"}.')
def vr_ids(*, cluster: str, as_json: bool) -> None:
    """Print the virtual router ids that OpenShift derives from the name of a CLUSTER.

    Two clusters on one network segment must not share an id: compare before you choose a name.
    """
    try:
        ids = router_ids(cluster)
    except ClusterNameError as error:
        raise click.BadParameter(f"{error}.", param_hint="CLUSTER") from error
    if as_json:
        click.echo(json.dumps({"cluster": cluster, "api": ids.api, "ingress": ids.ingress}))
        return
    click.echo(f"APIVirtualRouterID: {ids.api}")
    click.echo(f"IngressVirtualRouterID: {ids.ingress}")
