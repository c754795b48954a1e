"""The room of the program `migrate`: sessions move to the node that now serves their virtual IP."""
