"""`python -m appliance.console`: the command where no script of that name is on the PATH."""

from appliance.console.command import main

if __name__ == "__main__":
    main(prog_name="appliance")
