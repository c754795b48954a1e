"""Why a server, a pool, a frontend or a virtual IP is in its present state: `appliance why`."""
