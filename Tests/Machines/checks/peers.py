# check: Dormouse beside the kernel's swap (zram and a file) on this kernel: every way answers, and how long it takes
# as: root
# seconds: 200
# order: 95
"""Benchmarks/peers.py, which checks each answer. In emulation its times are no measurements: rows of one table can be
compared, because the ways have their turns in each round."""
import os
import subprocess
import sys

from common import PATIENCE, check, finish, note, run

COMMAND = [sys.executable, "/opt/machine/benchmarks/Benchmarks/peers.py", "--rounds", "3",
           "--objects", "13000", "--swap-megabytes", "256",
           "--only", "SIGCONT", "auto` (default)", "eager", "lazy", "zram", "swap file", "relaunch"]
ROWS = ["SIGCONT alone", "Dormouse, `auto` (default)", "Dormouse, `eager`", "Dormouse, `lazy`", "zram", "swap file", "relaunch"]

run("systemctl", "stop", "dormouse")
run("modprobe", "zram")
try:
    done = subprocess.run(COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=180 * PATIENCE, check=False, env={**os.environ, "DORMOUSE": "/usr/bin/dormouse"})
    code, text = done.returncode, done.stdout
except subprocess.TimeoutExpired as late:
    code, text = 124, (late.stdout or b"").decode(errors="replace")
note(text)
check("the comparison ends", code == 0, code)
check("no way is left out, and none fails", "left out" not in text and "not measured" not in text)
for row in ROWS:
    found = [line for line in text.splitlines() if line.startswith(f"| {row}")]
    # Light requests, and those that touch all objects.
    check(f"{row}: each request was answered", len(found) == 1 and not any("–" in line for line in found), found)
finish()
