#!/usr/bin/env python3
"""Many workers that start with the daemon: how long until all are ready, and how many aren't in time. See README.md here."""
import argparse
import sys
import time

from bench import BINARY, Daemon, machine
from Peers.programs import WORKER
from thousand import free_ports


def states(daemon):
    return [worker["state"] for worker in daemon.ask("ps")["workers"]]


def measure(options, binary):
    ports = free_ports(options.workers + 1)
    workers = {
        f"w{port}": {"command": [sys.executable, WORKER, str(options.objects), str(port)],
                     "readiness": {"tcp": port}, "autostart": port != ports[-1]} for port in ports}
    begin = time.monotonic()
    daemon = Daemon({
        "policy_overrides": {"foreground": {"mode": "activity", "idle_after": "60s", "max": "unlimited"},
                             "watchdog": {"launch": options.launch}},
        "workers": workers}, binary=binary)
    wanted = None
    try:
        while time.monotonic() - begin < 900:
            time.sleep(0.2)
            now = states(daemon)
            if wanted is None and time.monotonic() - begin > 1:
                asked = time.monotonic()
                daemon.ask("start", f"w{ports[-1]}")
                wanted = time.monotonic() - asked
            # One that waits for its turn is launching, too.
            if wanted is not None and "launching" not in now:
                break
        took = time.monotonic() - begin
        up = sum(state not in ("terminated", "terminating") for state in now)
        print(f"  {up} of {len(now)} were ready in time; after {took:.1f} s none was starting. "
              f"One that was asked for meanwhile was ready after {wanted:.2f} s")
        sys.stdout.flush()
    finally:
        daemon.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=300)
    parser.add_argument("--objects", type=int, default=0, help="of each worker; 0: python with its modules")
    parser.add_argument("--launch", default="20s", help="watchdog.launch")
    parser.add_argument("--before", help="another dormouse, measured first")
    options = parser.parse_args()
    print(f"{options.workers} workers, {options.launch} each. {machine()}")
    for binary in filter(None, [options.before, BINARY]):
        print(binary)
        measure(options, binary)


if __name__ == "__main__":
    main()
