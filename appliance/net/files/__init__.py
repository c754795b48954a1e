"""Files that programs share, each with one writer: boards, snapshots, operator states."""
