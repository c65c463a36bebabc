#!/usr/bin/env python3
"""A thousand workers: all hibernated under pressure, 200 of them woken within a second, beside the kernel's zram.
See README.md here."""
import argparse
import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

from bench import Daemon, machine
from peers import p95
from Peers import swap
from Peers.programs import HTTP, WORKER
from Peers.ways import anonymous, files

LAUNCHED_AT_ONCE = 8
FIRST_PORT = 15000


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def free_ports(count):
    found, port = [], FIRST_PORT
    while len(found) < count:
        port += 1
        with contextlib.suppress(OSError), socket.socket() as line:
            line.bind(("127.0.0.1", port))
            found.append(port)
    return found


def processor(pid):
    """Seconds that the process has used, its ended threads included."""
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """VmRSS and VmHWM, in MB."""
    with open(f"/proc/{pid}/status") as file:
        rows = dict(row.split(":", 1) for row in file)
    return [int(rows[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM")]


class Workers:
    """The workers, each with one open connection."""

    def __init__(self, options):
        self.options = options
        # Below those that the kernel gives to connections: it would give them to clients before the workers have them.
        self.ports = free_ports(options.workers)
        self.connections = []

    def command(self, port):
        return [sys.executable, WORKER, str(self.options.objects), str(port)]

    def connect(self, port):
        connection = HTTP(port)
        connection.send("all")
        connection.first_byte()
        connection.rest()
        self.connections.append(connection)

    def rest(self):
        """Until those that were woken can be put to sleep again."""
        time.sleep(5)

    def chosen(self):
        """The connections of those that are woken."""
        return self.connections[::max(1, len(self.connections) // self.options.wakes)][:self.options.wakes]

    def wake(self):
        """Milliseconds to the first byte of each of the requests, which are sent at even distances within a second."""
        chosen = self.chosen()
        times, threads = [], []

        def ask(connection):
            begin = time.perf_counter()
            connection.send("light")
            connection.first_byte()
            times.append((time.perf_counter() - begin) * 1000)
            connection.rest()

        begin = time.monotonic()
        for number, connection in enumerate(chosen):
            time.sleep(max(0, begin + number / len(chosen) - time.monotonic()))
            threads.append(threading.Thread(target=ask, args=[connection]))
            threads[-1].start()
        for thread in threads:
            thread.join(120)
        return times


class Hibernated(Workers):
    def start(self):
        configuration = {
            "policy_overrides": {
                "foreground": {"mode": "activity", "idle_after": "1s", "max": "unlimited"},
                "background": {"suspend_after": "1s"}, "watchdog": {"launch": "10m"},
                "hibernate": {"after": "never", "cooldown": "0s", "only_if_faster_than_relaunch": False,
                              "disk": {"budget": "50GB", "daily_writes": "1000GB"}}},
            "workers": {f"w{port}": {"command": self.command(port), "readiness": {"tcp": port}} for port in self.ports}}
        self.daemon = Daemon(configuration)
        self.pid = self.daemon.process.pid
        for port in self.ports:
            self.connect(port)
        # Real pressure may have hibernated some already.
        self.wait_for("suspended", "hibernated")

    def states(self):
        return [worker["state"] for worker in self.daemon.ask("ps")["workers"]]

    def wait_for(self, *wanted):
        end = time.monotonic() + 900
        while time.monotonic() < end:
            states = self.states()
            if set(states) <= set(wanted):
                return
            time.sleep(0.25)
        sys.exit(f"not all are {' or '.join(wanted)}: { {each: states.count(each) for each in set(states)} }")

    def sleep(self):
        """The operator's order for pressure: the ladder hibernates one worker after the other."""
        with contextlib.suppress(RuntimeError):
            subprocess.run([self.daemon.binary, "pressure", "set", "warning", "--for", "15m", "--socket", self.daemon.path], check=True,
                           stdout=subprocess.DEVNULL)
        self.wait_for("hibernated")
        subprocess.run([self.daemon.binary, "pressure", "set", "auto", "--socket", self.daemon.path], check=True,
                       stdout=subprocess.DEVNULL)

    def rest(self):
        end = time.monotonic() + 120
        while time.monotonic() < end and set(self.states()) - {"suspended", "hibernated"}:
            time.sleep(0.25)

    def left(self):
        pids = [worker["pid"] for worker in self.daemon.ask("ps")["workers"]]
        stay = sum(anonymous(pid) for pid in pids) / 1e6
        disk = sum(os.path.getsize(path) for path in files(os.path.join(self.daemon.directory, "state"))) / 1e6
        return stay, disk

    def close(self):
        self.daemon.close()


class Swapped(Workers):
    def start(self):
        self.device = swap.Zram(self.options.workers * 40)
        self.device.on()
        self.launch()

    def launch(self):
        self.group = swap.MemoryGroup()
        self.processes = []
        for first in range(0, len(self.ports), LAUNCHED_AT_ONCE):
            some = self.ports[first:first + LAUNCHED_AT_ONCE]
            self.processes += [subprocess.Popen(self.command(port), stdin=subprocess.DEVNULL,
                                                preexec_fn=self.group.enter) for port in some]
            for port in some:
                self.connect(port)

    def sleep(self):
        for process in self.processes:
            os.kill(process.pid, signal.SIGSTOP)
            swap.page_out(process.pid)
            os.kill(process.pid, signal.SIGCONT)
        self.group.reclaim()

    def left(self):
        return (sum(anonymous(process.pid) for process in self.processes) + self.device.in_ram()) / 1e6, 0

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.group.close()

    def close(self):
        self.end()
        self.device.close()


def measure(name, workers, options):
    try:
        workers.start()
        pid = getattr(workers, "pid", None)
        started, used = time.monotonic(), processor(pid) if pid else 0
        workers.sleep()
        slept = time.monotonic() - started
        stay, disk = workers.left()
        print(f"{name}: all asleep after {slept:.1f} s; {stay:.0f} MB stay in RAM, {disk:.0f} MB on disk")
        if pid:
            print(f"  the daemon used {processor(pid) - used:.1f} s of a processor; RSS {memory(pid)[0]:.1f} MB")
            time.sleep(10)
            idle, begin = processor(pid), time.monotonic()
            time.sleep(options.seconds)
            share = (processor(pid) - idle) / (time.monotonic() - begin) * 100
            print(f"  idle for {options.seconds} s: {share:.2f} % of a core, RSS {memory(pid)[0]:.1f} MB")
        for turn in range(options.turns):
            times = workers.wake()
            print(f"  {len(times)} connections in a second, turn {turn + 1}: first byte after "
                  f"{statistics.median(times):.1f} ms, p95 {p95(times):.1f}, p99 {percentile(times, 0.99):.1f}, "
                  f"at most {max(times):.1f}")
            sys.stdout.flush()
            if turn + 1 < options.turns:
                workers.rest()
                workers.sleep()
        if pid:
            now, peak = memory(pid)
            print(f"  the daemon afterwards: RSS {now:.1f} MB, at most {peak:.1f}")
    finally:
        workers.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--objects", type=int, default=13000, help="of each worker; 13000 make 15 MB")
    parser.add_argument("--wakes", type=int, default=200)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--only", choices=["dormouse", "zram"])
    options = parser.parse_args()
    print(f"{machine()}; {options.workers} workers of {options.objects} objects")
    ways = {"dormouse": ("Dormouse", Hibernated), "zram": ("zram", Swapped)}
    for key, (name, kind) in ways.items():
        if options.only in (None, key):
            try:
                measure(name, kind(options), options)
            except swap.Unavailable as error:
                print(f"{name}: not measured: {error}")


if __name__ == "__main__":
    main()
