#!/usr/bin/env python3
"""What does the daemon itself cost, a wrapper, and a start of the executable? See README.md here."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from bench import BINARY, Daemon, machine, processor

# KB, KB, percent of a core, KB, ms, bytes.
BUDGET = {"daemon": (10_000, 3_000, 0.05), "wrapper": 6_000, "version": 5, "size": 25_000_000}


def usage(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        rows = {row.split(":")[0]: int(row.split()[1]) for row in file.readlines()[1:]}
    return rows["Rss"], rows["Private_Dirty"], processor(pid)


def forget(path):
    """Drops the file's pages from the page cache, as after the machine's start. The kernel maps all of a cached
    block (a folio) when one of its pages is used, and the blocks of a file that has just been written may have 2 MB."""
    os.sync()
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def start(binary, workers):
    forget(binary)
    return Daemon({
        "policy": "ios-5",
        "policy_overrides": {"background": {"suspend_after": "500ms"}, "hibernate": {"after": "never"}},
        "workers": {f"idle-{n}": {"command": ["sh", "-c", "sleep 100000 & wait"]} for n in range(workers)}},
        binary=binary)


def settle(daemon, workers):
    end, states = time.monotonic() + 90, []
    while time.monotonic() < end and states.count("suspended") < workers - 1:
        time.sleep(0.2)
        states = [worker["state"] for worker in daemon.ask("ps")["workers"]]
    return states.count("suspended")


def wrapper(binary):
    """RSS of `dormouse wrap`, in KB."""
    with tempfile.TemporaryDirectory() as directory:
        forget(binary)
        environment = dict(os.environ, HOME=directory, XDG_STATE_HOME=directory, XDG_RUNTIME_DIR=directory)
        process = subprocess.Popen([binary, "wrap", "--", "cat"], stdin=subprocess.PIPE, env=environment)
        time.sleep(15)
        rss = usage(process.pid)[0]
        process.stdin.close()
        process.wait(20)
        return rss


def version(binaries, rounds=100):
    """Milliseconds until `dormouse --version` has ended: least and median of all rounds, by executable."""
    times = {binary: [] for binary in binaries}
    for _ in range(rounds):
        for binary in binaries:
            begin = time.perf_counter()
            subprocess.run([binary, "--version"], stdout=subprocess.DEVNULL, check=True)
            times[binary].append((time.perf_counter() - begin) * 1000)
    return {binary: (min(all), statistics.median(all)) for binary, all in times.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--check", action="store_true", help="exit code 1 over the budget")
    parser.add_argument("binaries", nargs="*", default=[BINARY], help="side by side")
    options = parser.parse_args()
    daemons = {binary: start(binary, options.workers) for binary in options.binaries}
    missed = []
    try:
        suspended = [settle(daemon, options.workers) for daemon in daemons.values()]
        print(f"{machine()}; {options.workers} workers, {suspended} suspended, {options.seconds} s\n")
        time.sleep(20)
        before = {binary: usage(daemon.process.pid) for binary, daemon in daemons.items()}
        time.sleep(options.seconds)
        for binary, daemon in daemons.items():
            rss, dirty, after = usage(daemon.process.pid)
            share = (after - before[binary][2]) / options.seconds * 100
            size = os.path.getsize(binary)
            print(f"{binary}: {size / 1e6:.1f} MB; daemon: RSS {rss} KB, private dirty {dirty} KB, "
                  f"processor {share:.3f} % of a core")
            missed += [size] if size > BUDGET["size"] else []
            missed += [value for value, most in zip((rss, dirty, share), BUDGET["daemon"]) if value > most]
    finally:
        for daemon in daemons.values():
            daemon.close()
    for binary in options.binaries:
        rss = wrapper(binary)
        print(f"{binary}: wrapper: RSS {rss} KB")
        missed += [rss] if rss > BUDGET["wrapper"] else []
    for binary, (least, median) in version(options.binaries).items():
        print(f"{binary}: --version: {least:.1f} ms at least, median {median:.1f} ms")
        missed += [least] if least > BUDGET["version"] else []
    if options.check and missed:
        sys.exit(f"over the budget: {missed}")


main()
