#!/usr/bin/env python3
"""What a fork costs a worker that is trimmed by userfaultfd (docs/trim.md): its child gets all missing pages.

    sudo python3 Benchmarks/forks.py [--rounds 9] [--megabytes 60]

Each round trims the worker. Then it forks a child that executes another program, or one that reads all objects, and
measures for how long fork(2) kept it; the same without a trim, and by posix_spawn, which copies nothing.
"""
import argparse
import socket
import statistics
import sys
import time

from bench import Daemon, free_port, machine
from Peers.trimmed import rules
from Peers.ways import anonymous

WORKER = """
import os, socket, subprocess, sys, time
objects = [str(number) * 9 for number in range(int(sys.argv[2]) * 9000)]
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    line, _ = server.accept()
    with line, line.makefile("rw") as stream:
        for kind in stream:
            kind, start = kind.strip(), time.perf_counter()
            if kind == "sum":
                said = sum(map(len, objects))
            elif kind == "spawn":
                subprocess.run(["/bin/true"])
                said = time.perf_counter() - start
            else:
                child = os.fork()
                if child == 0:
                    if kind == "exec":
                        os.execv("/bin/true", ["true"])
                    os._exit(sum(map(len, objects)) % 256)
                said = time.perf_counter() - start
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                if kind == "read" and status != sum(map(len, objects)) % 256:
                    said = "DIFFERENT"
            print(said, file=stream, flush=True)
"""


def ask(stream, kind):
    print(kind, file=stream, flush=True)
    return stream.readline().strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--megabytes", type=int, default=60)
    options = parser.parse_args()
    print(machine())
    port = free_port()
    daemon = Daemon({
        "policy": "standard",
        "policy_overrides": {"background": {"suspend_after": "never"}, "trim": {"min_gain": "0B", **rules("userfaultfd")}},
        "workers": {"forks": {"command": ["/usr/bin/python3", "-c", WORKER, str(port), str(options.megabytes)],
                              "readiness": {"tcp": port}}}})
    results = {}
    try:
        pid = daemon.pid_of("forks")
        while daemon.worker("forks")["state"] not in ("foreground", "background"):
            time.sleep(0.1)
        with socket.create_connection(("127.0.0.1", port)) as line, line.makefile("rw") as stream:
            sum_before = ask(stream, "sum")
            for number in range(options.rounds):
                for kind in ("spawn", "exec", "read"):
                    for trimmed in (False, True):
                        if trimmed:
                            daemon.ask("trim", "forks")
                        else:
                            daemon.ask("fill", "forks")
                        before = anonymous(pid)
                        said = ask(stream, kind)
                        if said == "DIFFERENT":
                            sys.exit("a child had other memory")
                        results.setdefault((kind, trimmed), []).append((float(said) * 1000, before, anonymous(pid)))
            equal = ask(stream, "sum") == sum_before
    finally:
        daemon.close()
    print("\n| a child by | trimmed | ms: median (most) | MB of the parent before | after |\n|---|---|---:|---:|---:|")
    for (kind, trimmed), rows in results.items():
        times, before, after = zip(*rows)
        print(f"| {kind} | {'yes' if trimmed else 'no'} | {statistics.median(times):.1f} ({max(times):.1f}) "
              f"| {statistics.median(before) / 1e6:.1f} | {statistics.median(after) / 1e6:.1f} |")
    print(f"\n{options.rounds} rounds in turns; the parent's sum is {'equal' if equal else 'DIFFERENT'}.")
    sys.exit(0 if equal else 1)


main()
