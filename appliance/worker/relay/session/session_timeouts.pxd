# Compiled as it is, without types: calls and loops are what it saves.
