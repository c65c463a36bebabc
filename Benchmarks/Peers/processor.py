"""Processor time of a peer with everything that it starts, and load on each processor."""
import os
import subprocess
import sys
import tempfile
import time

from Peers import swap

VERSION_1 = "/sys/fs/cgroup/cpuacct"


class ProcessorGroup:
    """A cgroup that counts the time of its processes and threads, also of those that have ended."""

    def __init__(self):
        self.is_version_1 = os.path.exists(f"{VERSION_1}/cpuacct.usage")
        self.root = VERSION_1 if self.is_version_1 else "/sys/fs/cgroup"
        try:
            self.path = tempfile.mkdtemp(prefix="dormouse-peers-", dir=self.root)
            self.used()
        except OSError as error:
            raise swap.Unavailable(f"no cgroup counts processor time: {error}") from None

    def enter(self):
        swap.write(f"{self.path}/cgroup.procs", "0")

    def leave(self):
        swap.write(f"{self.root}/cgroup.procs", "0")

    def used(self):
        """Milliseconds."""
        if self.is_version_1:
            with open(f"{self.path}/cpuacct.usage") as file:
                return int(file.read()) / 1e6
        with open(f"{self.path}/cpu.stat") as file:
            return int(dict(row.split() for row in file)["usage_usec"]) / 1e3

    def close(self):
        for _ in range(100):
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.02)


class Hogs:
    """A process on each processor that computes without a pause."""

    def __init__(self, are_wanted):
        self.count = len(os.sched_getaffinity(0)) if are_wanted else 0

    def __enter__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.count)]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
