"""The search path of the operator's commands, whatever the environment of the appliance."""

from typing import Final

COMMAND_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
