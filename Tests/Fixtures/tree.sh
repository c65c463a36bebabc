#!/bin/sh
# A worker that is a tree: this shell, a python, and that python's children, each with state.
#   tree.sh MEGABYTES CHILDREN     prints `ready`
# A line on stdin is answered by `digest HEX` over all of them. End of input ends the tree. The shell
# waits, as a start script does that doesn't exec.
here=$(cd "$(dirname "$0")" && pwd)
python3 "$here/tree.py" "$1" "$2"
status=$?
exit $status
