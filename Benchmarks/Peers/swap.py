"""Swap devices for peers.py and trim.py: made, switched on and off, and removed. One at a time is on."""
import ctypes
import errno
import glob
import os
import shutil
import subprocess
import tempfile
import time

PROCESS_MADVISE, MADV_PAGEOUT, RANGES = 440, 21, 1024
SYSTEM = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """This machine doesn't allow it; the text is the reason."""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()}")


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def areas():
    """The paths of the areas that are on."""
    with open("/proc/swaps") as file:
        return [row.split()[0] for row in file.readlines()[1:]]


def cached():
    """Bytes that are in swap and still in RAM."""
    with open("/proc/meminfo") as file:
        return next(int(row.split()[1]) << 10 for row in file if row.startswith("SwapCached"))


def compressed(folder):
    """Bytes of RAM that a zram device uses: mem_used_total, the third number."""
    with open(f"{folder}/mm_stat") as file:
        return int(file.read().split()[2])


def all_in_ram():
    """Bytes of RAM that everything uses that is in swap, on each device."""
    return cached() + sum(compressed(folder) for folder in glob.glob("/sys/block/zram*"))


class Device:
    """A swap area of its own. `path` is what `swapon` gets."""

    def on(self):
        run("swapon", self.path)

    def off(self):
        """Everything that is in it comes back to RAM."""
        run("swapoff", self.path)

    def is_on(self):
        return self.path in areas()

    def in_ram(self):
        return cached()

    def close(self):
        try:
            if self.is_on():
                self.off()
        finally:
            self.remove()


class SwapFile(Device):
    def __init__(self, directory, megabytes):
        self.path = os.path.join(directory, "dormouse-peers-swap")
        try:
            run("dd", "if=/dev/zero", f"of={self.path}", "bs=1M", f"count={megabytes}", "conv=fsync")
            os.chmod(self.path, 0o600)
            run("mkswap", self.path)
            self.on()
            self.off()
        except Unavailable:
            self.remove()
            raise

    def remove(self):
        if os.path.exists(self.path):
            os.unlink(self.path)


class Zram(Device):
    def __init__(self, megabytes, algorithm=None):
        self.path = None
        for folder in sorted(glob.glob("/sys/block/zram*")):
            with open(f"{folder}/disksize") as file:
                if file.read().strip() == "0":
                    self.folder, self.path = folder, f"/dev/{os.path.basename(folder)}"
                    break
        if not self.path:
            raise Unavailable("there is no unused zram device (modprobe zram)")
        try:
            if algorithm:
                write(f"{self.folder}/comp_algorithm", algorithm)
            with open(f"{self.folder}/comp_algorithm") as file:
                self.algorithm = file.read().split("[")[1].split("]")[0]
            write(f"{self.folder}/disksize", f"{megabytes}M")
            run("mkswap", self.path)
            self.on()
            self.off()
        except (OSError, Unavailable) as error:
            self.remove()
            raise Unavailable(str(error)) from None

    def in_ram(self):
        return compressed(self.folder) + cached()

    def remove(self):
        write(f"{self.folder}/reset", "1")


class MemoryGroup:
    """A memory cgroup of one process. Pages that `MADV_PAGEOUT` has written stay in RAM, in the swap cache, until
    the kernel needs room; the group makes it need room."""

    def __init__(self):
        isv1 = os.path.exists("/sys/fs/cgroup/memory/memory.force_empty")
        root = "/sys/fs/cgroup/memory" if isv1 else "/sys/fs/cgroup"
        try:
            self.path = tempfile.mkdtemp(prefix="dormouse-peers-", dir=root)
        except OSError as error:
            raise Unavailable(f"no memory cgroup can be made: {error}") from None
        self.file, self.order = ("memory.force_empty", "0") if isv1 else ("memory.reclaim", "4G")
        self.isv1 = isv1
        self.limit_file = "memory.limit_in_bytes" if isv1 else "memory.max"
        if not os.path.exists(f"{self.path}/{self.file}"):
            self.close()
            raise Unavailable(f"memory cgroups here have no {self.file}")

    def enter(self, pid=0):
        write(f"{self.path}/cgroup.procs", str(pid))

    def processes(self):
        with open(f"{self.path}/cgroup.procs") as file:
            return [int(row) for row in file]

    def limit(self, size):
        write(f"{self.path}/{self.limit_file}", str(size))

    def reclaim(self):
        try:
            write(f"{self.path}/{self.file}", self.order)
        except OSError as error:
            if error.errno != errno.EAGAIN:  # The group holds less than was asked for: all of it was reclaimed.
                raise

    def close(self):
        for _ in range(100):
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.02)


def page_out(pid):
    """Asks the kernel to write the writable private memory of a stopped process to swap."""
    places = []
    with open(f"/proc/{pid}/maps") as file:
        for row in file:
            words = row.split()
            start, end = (int(word, 16) for word in words[0].split("-"))
            if words[1][1] == "w" and words[1][3] == "p":
                places.append((start, end - start))
    ranges = (ctypes.c_ulong * (2 * len(places)))(*[number for place in places for number in place])
    process = os.pidfd_open(pid)
    try:
        for first in range(0, len(places), RANGES):
            count = min(RANGES, len(places) - first)
            if SYSTEM.syscall(PROCESS_MADVISE, process, ctypes.byref(ranges, first * 16), count, MADV_PAGEOUT, 0) < 0:
                raise Unavailable(f"process_madvise: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(process)


def filesystem_directory():
    """A directory on a disk, for the swap file: tmpfs can't hold one."""
    for base in (tempfile.gettempdir(), "/var/tmp"):
        kind = subprocess.run(["stat", "-f", "-c", "%T", base], capture_output=True, text=True).stdout.strip()
        if kind not in ("tmpfs", "overlayfs"):
            return tempfile.mkdtemp(prefix="dormouse-peers-", dir=base)
    raise Unavailable("no directory on a disk for a swap file")


def remove_directory(path):
    shutil.rmtree(path, ignore_errors=True)
