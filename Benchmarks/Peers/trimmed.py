"""The ways that trim.py compares: a worker that runs on while memory that it doesn't use is elsewhere, and its peers."""
import contextlib
import os

from bench import Daemon, processor, proportional
from thousand import Swapped as SwappedCrowd
from thousand import Workers
from Peers import swap
from Peers.ways import Dormouse, Memcr, Peer, Swapped, anonymous

# Requests to the daemon that are under way at the same time.
TRIMMED_AT_ONCE = 8


def rules(mechanism):
    """The part of a policy that sets the mechanism of its trims."""
    return {} if mechanism == "auto" else {"mechanism": mechanism}


class Untouched(Peer):
    """The twin: nothing happens to it."""

    def sleep(self):
        pass

    def order(self):
        pass


class Running:
    """A worker that runs while it is away: no order wakes it, and nothing is waited for."""

    def asleep(self):
        return anonymous(self.pid), swapped(self.pid)

    def order(self):
        pass

    def settle(self):
        pass


class Trimmed(Running, Dormouse):
    """`dormouse trim`."""
    stood_still = None

    def __init__(self, name, program, size, mechanism):
        super().__init__(name, program, size)
        self.overrides = {"trim": rules(mechanism)}

    def sleep(self):
        self.daemon.ask("trim", "web")

    def asleep(self):
        """Userfaultfd's memory is in an image; then the kernel counts nothing as swapped."""
        trim = self.daemon.worker("web")["trim"]
        self.stood_still = trim["last"]["stoppedSeconds"] * 1000
        return anonymous(self.pid), trim["swapped"]


class PagedOut(Running, Swapped):
    """Its pages are moved to swap without Dormouse, by root, while it runs. The swap stays on."""

    def prepare(self):
        pass

    def sleep(self):
        swap.page_out(self.pid)
        self.group.reclaim()


def is_wanted(way, options):
    return not options.only or any(word in way for word in options.only)


def ways(program, size, options):
    """All ways that this run compares, as workers of their own with the same state."""
    peers = [Untouched("untouched", program, size)]
    if options.hogs:  # Two equal processes differ then: by the processor that each has, and its hog.
        peers.append(Untouched("untouched, too", program, size))
    peers += [Trimmed(f"trimmed, {mechanism}", program, size, mechanism) for mechanism in options.mechanism]
    peers.append(Dormouse(f"frozen and hibernated, {options.resume}", program, size, options.resume))
    if options.pages_out:
        peers.append(PagedOut("paged out without Dormouse", program, size, None))
    if options.memcr:
        peers.append(Dormouse(f"frozen and hibernated, {options.resume}, lz4", program, size, options.resume, algorithm="lz4"))
        peers.append(Memcr("memcr, lz4", program, size, options.memcr, ["-z", "lz4"]))
    chosen = [peer for peer in peers if is_wanted(peer.name, options)]
    for peer in chosen:
        peer.user = options.user
    return chosen


# MARK: many workers

class TrimmedCrowd(Workers):
    """Workers of one daemon, all of them trimmed by request."""

    def __init__(self, options, mechanism):
        super().__init__(options)
        self.mechanism = mechanism

    def start(self):
        self.daemon = Daemon({
            "policy_overrides": {
                "foreground": {"max": "unlimited"}, "background": {"suspend_after": "never"},
                "watchdog": {"launch": "10m"}, "trim": rules(self.mechanism),
                "hibernate": {"after": "never", "disk": {"budget": "50GB", "daily_writes": "1000GB"}}},
            "workers": {f"w{port}": {"command": self.command(port), "readiness": {"tcp": port}} for port in self.ports}},
            user=self.options.user)
        for port in self.ports:
            self.connect(port)

    def sleep(self):
        for first in range(0, len(self.ports), TRIMMED_AT_ONCE):
            lines = [self.daemon.send("trim", f"w{port}") for port in self.ports[first:first + TRIMMED_AT_ONCE]]
            for line in lines:
                self.daemon.answer(line)

    def left(self):
        reports = self.daemon.ask("ps")["workers"]
        return sum(anonymous(report["pid"]) for report in reports), sum(report["trim"]["swapped"] for report in reports)

    def close(self):
        self.daemon.close()


class PagedOutCrowd(SwappedCrowd):
    """Workers without Dormouse that are paged out to the swap that is on."""
    daemon = None

    def start(self):
        self.launch()

    def left(self):
        pids = [process.pid for process in self.processes]
        return sum(anonymous(pid) for pid in pids), sum(swapped(pid) for pid in pids)

    def close(self):
        self.end()


# MARK: measurements

def swapped(pid):
    """Bytes of the process that are in swap."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(row.split()[1]) << 10 for row in file if row.startswith("Swap:"))


def major_faults(pid):
    """Page faults that had to wait: for a disk, for zram, or for the process that serves a userfaultfd."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[9])


def processes_of(daemon):
    """The daemon's pid, and that of its standby pager: its children that run its executable."""
    pid = daemon.process.pid
    children = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{thread}/children") as file:  # It has ended.
            children += [int(word) for word in file.read().split()]
    with contextlib.suppress(OSError):  # A child has ended, or runs as another user, and may not be read.
        executable = os.readlink(f"/proc/{pid}/exe")
        return [pid] + [child for child in children if os.readlink(f"/proc/{child}/exe") == executable]
    return [pid]


def daemon_cost(daemon):
    """Of the daemon and its standby pager together: seconds of processor time, and anonymous memory in MB, which grows with
    the workers; and the RSS of each in MB, which also has the executable's pages."""
    pids = processes_of(daemon)
    sizes = [proportional(pid, "Rss") / 1024 for pid in pids]
    return {"used": sum(processor(pid) for pid in pids), "anonymous": sum(anonymous(pid) for pid in pids) / (1 << 20),
            "rss": sizes[0], "pager": sum(sizes[1:])}


@contextlib.contextmanager
def device(kind, megabytes):
    """Swap for one run, and its description: the machine's own if that is on, or a zram device or a file that is removed
    afterwards."""
    if there := swap.areas():
        yield f"the machine's own swap ({', '.join(there)})"
        return
    with contextlib.ExitStack() as stack:
        if kind == "zram":
            made = swap.Zram(megabytes)
            words = f"zram ({made.algorithm})"
        else:
            directory = swap.filesystem_directory()
            stack.callback(swap.remove_directory, directory)
            made, words = swap.SwapFile(directory, megabytes), "a swap file"
        stack.callback(made.close)
        made.on()
        yield words
