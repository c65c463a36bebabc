#!/bin/sh
# A worker that is a tree: this shell, a python, and that python's children, each with state.
#   tree.sh [MEGABYTES [CHILDREN]]     prints `ready PID` (the shell's)
# On stdin: `digest` gives `digest HEX` over all of them, `touch` changes each one's state, `pids`
# names them. End of input ends the tree. The shell waits, as a start script does that doesn't exec.
here=$(cd "$(dirname "$0")" && pwd)
python3 "$here/tree.py" --shell $$ --megabytes "${1:-4}" --children "${2:-2}"
status=$?
exit $status
