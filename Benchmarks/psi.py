#!/usr/bin/env python3
"""How soon after the kernel's event does the ladder act? See README.md here."""
import argparse
import os
import random
import select
import statistics
import subprocess
import sys
import tempfile
import time

from bench import Daemon, machine

GROUP = "/sys/fs/cgroup/memory/dormouse-psi"
LIMIT = 16 << 20
TRIGGER = b"some 200000 2000000\0"  # 10 % of two seconds, as in the policy below

WORKER = """
import os, signal, sys, time
out = open(sys.argv[1], "a", buffering=1)
signal.signal(signal.SIGUSR1, lambda *_: print(time.monotonic_ns(), file=out))
print("ready", file=out)
while True: signal.pause()
"""

# Reads a file that doesn't fit its group, again and again: every read waits for memory.
THRASH = """
import mmap, sys
with open(sys.argv[1]) as group, open(sys.argv[2], "rb") as file:
    space = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    while True:
        for place in range(0, len(space), 4096): space[place]
"""


def group():
    try:
        os.makedirs(GROUP, exist_ok=True)
        with open(f"{GROUP}/memory.limit_in_bytes", "w") as file:
            file.write(str(LIMIT))
    except OSError as error:
        sys.exit(f"this takes cgroup v1's memory controller, to make a stall without harm to other programs: {error}")


def thrash(path):
    """Two processes, which are in the group from their first instruction on."""
    def enter():
        with open(f"{GROUP}/cgroup.procs", "w") as file:
            file.write("0")
    return [subprocess.Popen([sys.executable, "-c", THRASH, f"{GROUP}/cgroup.procs", path],
                             preexec_fn=enter) for _ in range(2)]


def last_line(path):
    with open(path) as file:
        return file.read().split("\n")[-2:-1]


def round_trip(words, data):
    """Seconds from the observer's event to the worker's, negative if the worker was first."""
    before = last_line(words)
    trigger = os.open("/proc/pressure/memory", os.O_RDWR | os.O_NONBLOCK)
    os.write(trigger, TRIGGER)
    poll = select.poll()
    poll.register(trigger, select.POLLPRI)
    load = thrash(data)
    try:
        if not poll.poll(20_000):
            return None
        observed = time.monotonic_ns()
        end = time.monotonic() + 5
        while last_line(words) == before and time.monotonic() < end:
            time.sleep(0.02)
    finally:
        for process in load:
            process.kill()
            process.wait()
        os.close(trigger)
    if last_line(words) == before:
        return None
    return (int(last_line(words)[0]) - observed) / 1e9


def measure(words, data):
    """One round with its own daemon. The daemon itself measures once a second, and the kernel (without
    CAP_SYS_RESOURCE) every two seconds. The phase between the two must vary between rounds."""
    if os.path.exists(words):
        os.unlink(words)
    # The effect of the last round's load ends after a whole window.
    time.sleep(4 + random.random() * 2)
    daemon = Daemon({
        "policy_overrides": {
            "pressure": {
                "warning": {"stall": {"some": "10%", "window": "2s"}},
                "urgent": "never", "critical": {"available_below": "1%"}},
            "ladder": {"warning": ["warn"], "urgent": [], "critical": ["terminate suspended"]}},
        "workers": {"warned": {"command": [sys.executable, "-c", WORKER, words],
                               "shed": {"signal": "SIGUSR1"}}}})
    try:
        while not os.path.exists(words) or last_line(words) != ["ready"]:
            time.sleep(0.05)
        daemon.ask("foreground", "warned")
        time.sleep(random.random() * 2)
        if last_line(words) != ["ready"]:
            return None  # another program's stall
        return round_trip(words, data)
    finally:
        daemon.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    group()
    directory = tempfile.mkdtemp(prefix="dormouse-psi-")
    words, data = f"{directory}/words", f"{directory}/data"
    try:
        with open(data, "wb") as file:
            file.write(os.urandom(256 << 20))
            file.flush()
            os.fsync(file.fileno())
            # Pages that are in the page cache already are charged to this process and not to the group.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        found = []
        for number in range(options.rounds):
            found.append(measure(words, data))
            print(number + 1, found[-1] and f"{found[-1] * 1000:.2f} ms", flush=True)
        times = sorted(second * 1000 for second in found if second is not None)
        after = [time for time in times if time >= 0]
        print(f"\n{machine()}; {len(times)} of {len(found)} rounds warned the worker, "
              f"{len(times) - len(after)} of them before the kernel's event: the daemon had looked itself")
        if after:
            print(f"the others, from the kernel's event to the worker's signal handler: median "
                  f"{statistics.median(after):.2f} ms, largest {after[-1]:.2f} ms")
    finally:
        for name in (words, data):
            if os.path.exists(name):
                os.unlink(name)
        os.rmdir(directory)
        os.rmdir(GROUP)


main()
