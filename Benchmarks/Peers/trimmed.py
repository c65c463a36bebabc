"""The ways that trim.py compares: a worker that runs on while memory that it doesn't use is elsewhere, and its peers."""
import contextlib

from Peers import swap
from Peers.ways import Dormouse, Peer, Swapped, anonymous


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

    def sleep(self):
        self.daemon.ask("trim", "web")


class PagedOut(Running, Swapped):
    """Its pages are moved to swap without Dormouse, by root, while it runs. The swap stays on."""

    def prepare(self):
        pass

    def sleep(self):
        swap.page_out(self.pid)
        self.group.reclaim()


def swapped(pid):
    """Bytes of the process that are in swap."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(row.split()[1]) << 10 for row in file if row.startswith("Swap:"))


def major_faults(pid):
    """Page faults that had to wait for a disk or for zram."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[9])


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
