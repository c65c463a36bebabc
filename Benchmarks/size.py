#!/usr/bin/env python3
"""Does the daemon's memory depend on the worker's size? See README.md here."""
import argparse
import os
import sys
import time

from bench import ROOT, Daemon, machine

# Half of it random, half of it compressible.
WORKER = ("import os, time\n"
          "state = [os.urandom(1 << 20) if n % 2 else b'dormouse' * (1 << 17) for n in range({})]\n"
          "print('ready', flush=True)\n"
          "time.sleep(100000)\n")


def peak(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(row.split()[1]) for row in file if row.startswith("VmHWM:"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=800)
    options = parser.parse_args()
    daemon = Daemon({
        "policy": os.path.join(ROOT, "Policies", "ios-5.yaml"),
        "policy_overrides": {"watchdog": {"launch": "10m"},
                             "hibernate": {"max_footprint": "unlimited", "after": "never",
                                           "disk": {"budget": "100GB", "daily_writes": "1000GB"}}},
        "workers": {"big": {"command": [sys.executable, "-c", WORKER.format(options.megabytes)],
                            "readiness": {"log_line": "ready"}, "autostart": False}}})
    try:
        daemon.ask("start", "big")
        before, footprint = peak(daemon.process.pid), daemon.worker("big")["footprint"]
        start = time.monotonic()
        daemon.ask("hibernate", "big")
        hibernated = time.monotonic()
        daemon.ask("wake", "big")
        woken = time.monotonic()
        print(f"{machine()}\n")
        print(f"footprint {footprint >> 20} MB: hibernated in {hibernated - start:.2f} s, back in "
              f"{woken - hibernated:.2f} s; the daemon's peak {before} KB before, "
              f"{peak(daemon.process.pid)} KB after")
    finally:
        daemon.close()


main()
