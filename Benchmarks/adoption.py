#!/usr/bin/env python3
"""What adoption by rule costs: a daemon's processor time beside many processes of which no rule matches any.

    python3 Benchmarks/adoption.py [--processes 2000] [--rules 3] [--seconds 60]

Two daemons are measured at the same time, one with the rules and one without, after the first looks, which read each
process once.
"""
import argparse
import os
import signal
import time

from bench import Daemon, machine


def used(pid):
    """Seconds of processor time."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=2000)
    parser.add_argument("--rules", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    crowd = []
    for _ in range(options.processes):
        pid = os.fork()
        if pid == 0:
            while True:
                signal.pause()
        crowd.append(pid)
    rules = [{"name": f"rule-{number}", "match": {"command": f"*/no-such-program-{number} *"}}
             for number in range(options.rules)]
    daemons = [Daemon({"adopt": rules}), Daemon({})]
    try:
        first = [used(daemon.process.pid) for daemon in daemons]
        time.sleep(20)
        settled = [used(daemon.process.pid) for daemon in daemons]
        time.sleep(options.seconds)
        last = [used(daemon.process.pid) for daemon in daemons]
    finally:
        for daemon in daemons:
            daemon.close()
        for pid in crowd:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    print(machine())
    print(f"{options.processes} processes more, {options.rules} rules that match none; processor time, s")
    print(f"{'':12}{'first 20 s':>12}{f'next {options.seconds} s':>12}{'of a core':>12}")
    for name, a, b, c in zip(["with rules", "without"], first, settled, last):
        print(f"{name:12}{b - a:12.2f}{c - b:12.2f}{(c - b) / options.seconds:12.2%}")


main()
