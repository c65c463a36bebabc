#!/usr/bin/env python3
"""What does the daemon itself cost? See README.md here."""
import argparse
import os
import time

from bench import ROOT, Daemon, machine


def usage(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        rows = {row.split(":")[0]: int(row.split()[1]) for row in file.readlines()[1:]}
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rsplit(")", 1)[1].split()
    ticks = int(words[11]) + int(words[12])
    return rows["Rss"], rows["Private_Dirty"], ticks / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    daemon = Daemon({
        "policy": os.path.join(ROOT, "Policies", "ios-5.yaml"),
        "policy_overrides": {"background": {"suspend_after": "500ms"},
                             "hibernate": {"after": "never"}},
        "workers": {f"idle-{n}": {"command": ["sh", "-c", "sleep 100000 & wait"]}
                    for n in range(options.workers)}})
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            states = [worker["state"] for worker in daemon.ask("ps")["workers"]]
            if states.count("suspended") >= options.workers - 1:
                break
            time.sleep(0.2)
        os.sync()  # a binary that has just been written counts as dirty until it is on disk
        before = usage(daemon.process.pid)
        time.sleep(options.seconds)
        rss, dirty, after = usage(daemon.process.pid)
        share = (after - before[2]) / options.seconds * 100
        print(f"{machine()}; {options.workers} workers, {states.count('suspended')} suspended, "
              f"{options.seconds} s\n")
        print(f"RSS {rss} KB, private dirty {dirty} KB, processor {share:.2f} % of a core")
    finally:
        daemon.close()


main()
