#!/usr/bin/env python3
"""How much of a log is on disk while its worker writes as fast as it can? See README.md here."""
import argparse
import os
import sys
import tempfile
import time

from bench import Daemon, machine, processor

WRITER = """
import os, time
end = time.time() + %f
while time.time() < end: os.write(1, b"x" * 65536)
time.sleep(1000)
"""
QUIET = {"command": ["sleep", "100000"], "output": {"max_size": "1MB"},
         "policy": {"background": {"suspend_after": "never"}}}


def allocated(directory):
    """Bytes on disk of all files there."""
    total = 0
    for entry in os.scandir(directory):
        try:
            total += entry.stat().st_blocks * 512
        except FileNotFoundError:
            pass  # It was rotated away.
    return total


def flood(seconds, times):
    first, later = [], []
    for _ in range(times):
        # Beside the files that are kept, so that only the logs are counted.
        with tempfile.TemporaryDirectory(prefix="dormouse-logs-") as logs:
            daemon = Daemon({"workers": {"writer": {
                "command": [sys.executable, "-c", WRITER % seconds], "restart": "no",
                "output": {"file": f"{logs}/writer.log", "max_size": "1MB"}}}})
            try:
                began, peaks = time.monotonic(), [0, 0]
                while (age := time.monotonic() - began) < seconds:
                    peaks[age > 2] = max(peaks[age > 2], allocated(logs))
                    time.sleep(0.001)
            finally:
                daemon.close()
        first.append(peaks[0] / 1e6)
        later.append(peaks[1] / 1e6)
    print(f"most on disk, MB, in the first 2 s: {min(first):.0f} to {max(first):.0f}; "
          f"later: {min(later):.0f} to {max(later):.0f}")


def quiet(workers, seconds):
    """The daemon's processor time, with limits and without."""
    for limit in (True, False):
        worker = QUIET if limit else {name: QUIET[name] for name in QUIET if name != "output"}
        daemon = Daemon({"workers": {f"quiet-{n}": worker for n in range(workers)}})
        try:
            end = time.monotonic() + 120
            while time.monotonic() < end:
                states = [worker["state"] for worker in daemon.ask("ps")["workers"]]
                if len(states) == workers and not {"launching", "terminated"} & set(states):
                    break
                time.sleep(0.5)
            time.sleep(5)
            before = processor(daemon.process.pid)
            time.sleep(seconds)
            used = processor(daemon.process.pid) - before
        finally:
            daemon.close()
        print(f"{workers} quiet workers, {'with' if limit else 'without'} max_size: "
              f"{used / seconds * 100:.2f} % of a core")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--quiet", type=int, default=0, metavar="WORKERS")
    arguments = parser.parse_args()
    print(machine())
    flood(arguments.seconds, arguments.times)
    if arguments.quiet:
        quiet(arguments.quiet, arguments.seconds)


if __name__ == "__main__":
    main()
