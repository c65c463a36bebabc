#!/usr/bin/env python3
"""From a key to its echo on a terminal: a node program with a full-screen display, under `dormouse wrap`.

    [DORMOUSE=PROGRAM] python3 Benchmarks/terminal.py [--size 300] [--rounds 10]

The program reads single keys and draws a line for each, as an agent's display does, and holds --size MB of objects. A
pty is the keyboard and the screen. Each round types a key while the program is awake, waits until it hibernates, types
the next key, and lets it read all of its objects. Prints medians and ranges.
"""
import argparse
import os
import sys
import tempfile
import time

from bench import BINARY, figures, machine, tree
from terminals import PROGRAM, Terminal


def wait_for_sleep(log, mark):
    end = time.monotonic() + 120
    while time.monotonic() < end:
        text = open(log).read()
        if len(text) > mark and "→ hibernated" in text.strip().rpartition("\n")[2]:
            return len(text)
        time.sleep(0.1)
    sys.exit("terminal: it doesn't hibernate: " + open(log).read()[-1000:])


def program_of(wrapper):
    """The wrapper's child that isn't the wrapper's own."""
    for pid in tree(wrapper)[1:]:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"\0wrap\0" not in file.read():
                return pid
    sys.exit("terminal: the wrapper has no program")


def memory(pid):
    """RSS in MB."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=300, help="MB of objects, about")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        script, log = f"{directory}/agent.js", f"{directory}/log"
        with open(script, "w") as file:
            file.write(PROGRAM)
        os.mkdir(f"{directory}/run", 0o700)
        terminal = Terminal(
            [BINARY, "wrap", "--idle-after", "1s", "--hibernate-after",
             "500ms", "--log", log, "--", "node", script, str(options.size)],
            {"XDG_STATE_HOME": f"{directory}/state", "XDG_RUNTIME_DIR": f"{directory}/run"})
        terminal.wait("<ready>")
        pid = program_of(terminal.pid)
        rows, mark = [], 0
        for number in range(options.rounds):
            awake = terminal.press("a", "<a>")
            before = memory(pid)
            mark = wait_for_sleep(log, mark)
            asleep = memory(pid)
            key = terminal.press("b", "<b>")
            began = time.monotonic()
            os.write(terminal.descriptor, b"s")
            terminal.wait("<sum ")
            rows.append((awake, key, (time.monotonic() - began) * 1000, before, asleep))
            time.sleep(0.3)
            terminal.shown = b""
        terminal.close()
    awake, key, whole, before, asleep = zip(*rows)
    print(machine())
    print(f"node, {options.size} MB of objects asked for; median (range) of {options.rounds} rounds")
    print(f"key to echo, awake, ms:         {figures(awake)}")
    print(f"key to echo, hibernated, ms:    {figures(key)}")
    print(f"all objects after that, ms:     {figures(whole)}")
    print(f"RSS, awake and hibernated, MB:  {figures(before)}, {figures(asleep)}")


main()
