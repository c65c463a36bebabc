"""Workers in use and their untouched twins: trim.py's memory over time."""
import json
import os
import subprocess
import time

from bench import as_user, free_port
from Peers.programs import PROGRAMS
from Peers.trimmed import major_faults, swapped
from Peers.ways import anonymous

BY_NAME = {program.name: program for program in PROGRAMS}
# Key, program, what uses it, seconds between requests (None: there are none), and whether each has its own connection.
USES = [
    ("python-timer", "python", "a timer each second", None, False),
    ("python", "python", "a light request each 5 s", 5, False),
    ("asyncio", "asyncio", "a ping each 20 s", 20, False),
    ("redis", "redis", "a light request each 5 s", 5, False),
    ("ruby", "ruby", "a timer each second, a light request each 5 s", 5, False),
    ("node", "node", "a timer each second, a health check each 10 s", 10, True),
    ("jvm", "jvm", "a timer each second, a health check each 10 s", 10, True),
    ("jvm-serial", "jvm-serial", "a timer each second, a health check each 10 s", 10, True),
    ("go", "go", "a timer each second, a health check each 10 s", 10, True),
]
TIMER = {"TIMER": "1"}


def size_of(program):
    """The second of its sizes: 40 to 80 MB."""
    return program.sizes[min(1, len(program.sizes) - 1)]


class Pair:
    """A trimmed worker and its twin, which get the same requests at the same times."""

    def __init__(self, key, name, use, every, is_new):
        self.key, self.program, self.use, self.every, self.is_new = key, BY_NAME[name], use, every, is_new
        self.ports = free_port(), free_port()
        self.environment = TIMER if "timer" in use else {}
        self.times = [], []
        self.samples = []

    def command(self, side):
        return self.program.command(size_of(self.program), self.ports[side])

    def configuration(self):
        return {"command": self.command(0), "environment": self.environment, "readiness": {"tcp": self.ports[0]}}

    def begin(self, daemon, user):
        pid = daemon.pid_of(self.key)
        self.twin = subprocess.Popen(as_user(user) + self.command(1), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, env={**os.environ, **self.environment},
                                     start_new_session=True)
        self.pids = pid, self.twin.pid
        self.connections = [self.program.connect(port, size_of(self.program)) for port in self.ports]
        for connection in self.connections:
            connection.ask("all")
            for _ in range(20):
                connection.ask("light")
        self.sums = [connection.checksum() for connection in self.connections]
        self.before = anonymous(self.pids[0])  # The checksum has just read all of it.

    def ask(self, number):
        """One light request to each; they take turns at being first."""
        for side in ((0, 1), (1, 0))[number % 2]:
            start = time.perf_counter()
            if self.is_new:
                connection = self.program.connection(self.ports[side])
                connection.ask("light")
                connection.line.close()
            else:
                self.connections[side].ask("light")
            self.times[side].append((time.perf_counter() - start) * 1000)

    def sample(self, seconds):
        self.samples.append([round(seconds, 1), *[anonymous(pid) for pid in self.pids], swapped(self.pids[0]),
                             major_faults(self.pids[0])])

    def result(self, trims, report):
        """The faults a minute are those since a minute after the first trim."""
        later = [row for row in self.samples if trims and row[0] >= trims[0]["at"] + 60]
        faults = (later[-1][4] - later[0][4]) / (later[-1][0] - later[0][0]) * 60 if len(later) > 1 else None
        # A health check may have closed the connection that was open from the beginning.
        after = [self.program.connect(port, size_of(self.program)).checksum() if self.is_new else connection.checksum()
                 for port, connection in zip(self.ports, self.connections)]
        return {"use": self.use, "before": self.before, "after": self.samples[-1][1],
                "twin": self.samples[-1][2], "swapped": report.get("trim", {}).get("swapped", 0), "faults": faults,
                "trims": trims, "times": self.times, "equal": after == self.sums, "samples": self.samples}

    def end(self):
        if hasattr(self, "twin"):
            self.twin.kill()
            self.twin.wait()


def now():
    """Seconds of the journal's clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def journaled_trims(daemon, start):
    """The trims of each worker by the daemon's journal: when (seconds since `start`), bytes, and milliseconds."""
    directory = daemon.ask("events")["journal"]["directory"]
    trims = {}
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name)) as file:
            records = [json.loads(row) for row in file if '"e":"trimmed"' in row]
        for record in records:
            result = record["trim"]
            trims.setdefault(record["w"], []).append({
                "at": record["t"] / 1e9 - start, "took": milliseconds_of(result["duration"]),
                "stood still": milliseconds_of(result["stoppedFor"]),
                "before": result["residentBefore"], "after": result["residentAfter"], "swapped": result["swapped"]})
    return trims


def milliseconds_of(duration):
    """A duration in the journal is nanoseconds, or a pair of seconds and attoseconds."""
    return duration / 1e6 if isinstance(duration, (int, float)) else duration[0] * 1e3 + duration[1] / 1e15
