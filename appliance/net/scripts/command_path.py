"""Where commands of the operator are looked for, whatever the environment of the appliance says."""

from typing import Final

COMMAND_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
