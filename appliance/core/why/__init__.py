"""Why a server, a pool, a frontend or a virtual IP is in the state that it is in: `appliance why`."""
