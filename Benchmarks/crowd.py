#!/usr/bin/env python3
"""More workers than fit in RAM, of which one at a time is used: the kernel's swap beside Dormouse.
See README.md here."""
import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time

from bench import Daemon, free_port, machine
from peers import make_devices, p95
from Peers import swap
from Peers.programs import HTTP, WORKER


class Crowd:
    """Workers in one memory group with a limit."""

    def __init__(self, options, interval):
        self.options, self.interval = options, interval
        self.ports = [free_port() for _ in range(options.workers)]
        self.group = swap.MemoryGroup()

    def commands(self):
        extra = [str(self.interval)] if self.interval else []
        return [[sys.executable, WORKER, str(self.options.objects), str(port)] + extra for port in self.ports]

    def connect(self):
        self.connections = [HTTP(port) for port in self.ports]
        for connection in self.connections:
            request(connection)

    def close(self):
        self.group.close()


class SwappedCrowd(Crowd):
    def __init__(self, options, interval, device):
        super().__init__(options, interval)
        self.device, self.processes = device, []

    def start(self):
        """The limit comes first: the kernel refuses a lower one while the workers touch more than that."""
        self.device.on()
        self.group.limit(self.options.limit << 20)
        self.processes = [subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=self.group.enter)
                          for command in self.commands()]
        self.connect()

    def traffic(self):
        """Bytes read from swap and written to it, of the whole machine: no other swap is on."""
        with open("/proc/vmstat") as file:
            rows = dict(row.split() for row in file)
        return int(rows["pswpin"]) << 12, int(rows["pswpout"]) << 12

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        with contextlib.suppress(swap.Unavailable):
            self.device.off()
        super().close()


class DormouseCrowd(Crowd):
    """Quiet for a second in the background means suspended, and at once hibernated. There is no swap, so the limit
    comes when all workers have been launched and hibernated."""
    daemon = None

    def start(self):
        home = own_memory_group()
        self.group.enter()  # The daemon inherits the group, and its workers too.
        try:
            self.daemon = Daemon({
                "policy_overrides": {
                    "foreground": {"mode": "activity", "idle_after": "1s", "max": "unlimited"},
                    "background": {"suspend_after": "1s"},
                    "hibernate": {"after": "100ms", "cooldown": "0s", "max_footprint": "unlimited",
                                  "only_if_faster_than_relaunch": False,
                                  "disk": {"budget": "20GB", "daily_writes": "1000GB"}}},
                "workers": {f"w{port}": {"command": command, "readiness": {"tcp": port}}
                            for port, command in zip(self.ports, self.commands())}})
        finally:
            swap.write(f"{home}/cgroup.procs", "0")
        self.connect()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            states = [worker["state"] for worker in self.daemon.ask("ps")["workers"]]
            if states.count("hibernated") == len(states):
                break
            time.sleep(0.2)
        self.group.limit(self.options.limit << 20)

    def traffic(self):
        """Bytes read and written by the daemon's process, on the disk; reads are often from the page cache."""
        with open(f"/proc/{self.daemon.process.pid}/io") as file:
            rows = dict(row.strip().split(": ") for row in file)
        return int(rows["read_bytes"]), int(rows["write_bytes"])

    def close(self):
        if self.daemon:
            self.daemon.close()
        super().close()


def own_memory_group():
    with open("/proc/self/cgroup") as file:
        for row in file:
            _, controllers, path = row.strip().split(":", 2)
            if "memory" in controllers.split(","):
                return "/sys/fs/cgroup/memory" + path
    return "/sys/fs/cgroup" + path


def request(connection):
    """Milliseconds until the first byte of an answer for which all objects are touched."""
    start = time.perf_counter()
    connection.send("all")
    connection.first_byte()
    passed = (time.perf_counter() - start) * 1000
    connection.rest()
    return passed


def measure(name, crowd, options):
    try:
        crowd.start()
        time.sleep(3)
        first, rest = [], []
        before, began = crowd.traffic(), time.monotonic()
        for turn in range(options.turns):
            connection = crowd.connections[turn % options.workers]
            end = time.monotonic() + options.seconds
            times = []
            while time.monotonic() < end or not times:
                times.append(request(connection))
                time.sleep(0.2)
            first.append(times[0])
            rest += times[1:]
        passed = time.monotonic() - began
        read, written = ((after - earlier) / 1e6 / passed for after, earlier in zip(crowd.traffic(), before))
        print(f"| {name} | {figures(first)} | {figures(rest)} | {len(first) + len(rest)} "
              f"| {read:.1f} | {written:.1f} |")
    except (OSError, RuntimeError) as error:
        print(f"| {name} | not measured to the end: {error} | | | | |")
    finally:
        sys.stdout.flush()
        crowd.close()


def figures(values):
    return f"{statistics.median(values):.0f} ({p95(values):.0f})" if values else "–"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="DORMOUSE=FILE in the environment names the executable. Needs root, swapon and a "
        "memory cgroup. Only the workers' own group is short of memory.")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--objects", type=int, default=60000, help="size of each worker (60000: about 30 MB)")
    parser.add_argument("--limit", type=int, default=128, help="megabytes of RAM for all workers (128)")
    parser.add_argument("--turns", type=int, default=16, help="how many times another worker is used (16)")
    parser.add_argument("--seconds", type=float, default=3, help="how long one is used, a request every 0.2 s (3)")
    parser.add_argument("--interval", type=float, default=1, help="seconds between a worker's own touches (1)")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="rows whose name contains one of these words")
    options = parser.parse_args()
    options.no_swap, options.swap_megabytes, options.zram_algorithm = False, 1024, None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that swap is switched off
    print(machine())
    with contextlib.ExitStack() as stack:
        devices = make_devices(options, stack)
        kinds = {None: "workers that do nothing by themselves",
                 options.interval: f"workers that touch all of their objects every {options.interval:g} s"}
        for interval, title in kinds.items():
            print(f"\n{options.workers} {title}; {options.limit} MB for all; ms, median (p95)\n")
            print("| | first request to a worker | next ones | requests | read, MB/s | written, MB/s |")
            print("|---|---:|---:|---:|---:|---:|")
            ways = [(name, lambda device=device: SwappedCrowd(options, interval, device)) for name, device in devices]
            ways.append(("Dormouse", lambda: DormouseCrowd(options, interval)))
            for name, make in ways:
                if not options.only or any(word in name for word in options.only):
                    measure(name, make(), options)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
