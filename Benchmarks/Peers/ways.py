"""The ways to put a worker to sleep that peers.py and trim.py compare, each behind the same few methods."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from bench import Daemon, as_user, free_port
from Peers import swap
from Peers.processor import ProcessorGroup
from Peers.programs import KINDS

def anonymous(pid):
    """Bytes of anonymous memory in RAM."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(row.split()[1]) << 10 for row in file if row.startswith("Anonymous:"))


def stop(pid):
    """SIGSTOP, until the process has stopped."""
    os.kill(pid, signal.SIGSTOP)
    while True:
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rsplit(")", 1)[1].split()[0] == "T":
                return
        time.sleep(0.001)


def drop(paths):
    """Writes files to the disk and drops them from the page cache."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def files(directory):
    return [os.path.join(folder, name) for folder, _, names in os.walk(directory) for name in names]


class Peer:
    """One way to put a worker to sleep. The worker is the same program for each, with the same state."""
    user = None  # Root runs the worker, and the daemon, as this one.

    def __init__(self, name, program, size):
        self.name, self.program, self.size = name, program, size
        self.results = {kind: {"wake": [], "sleep": [], "ram": [], "disk": [], "used": []} for kind in KINDS}
        self.processor = None
        self.errors = []

    def command(self):
        return self.program.command(self.size, self.port)

    def spawn(self, first=None):
        """In a session of its own, as the daemon starts workers: the kernel divides the processors among sessions."""
        self.process = subprocess.Popen(as_user(self.user) + self.command(), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, preexec_fn=first, start_new_session=True)
        self.pid = self.process.pid

    def launch(self):
        self.port = free_port()
        with contextlib.suppress(swap.Unavailable):
            self.processor = ProcessorGroup()
            self.processor.enter()
        try:
            self.start()
        finally:
            if self.processor:
                self.processor.leave()
        self.connection = self.program.connect(self.port, self.size)
        self.connection.send("all")
        self.connection.first_byte()
        self.connection.rest()

    def start(self):
        self.spawn()

    def end(self):
        self.process.kill()
        self.process.wait()

    def used(self):
        """Milliseconds of processor time so far, of all that it has started; 0 where it isn't counted."""
        return self.processor.used() if self.processor else 0

    def close(self):
        """After `end`, which a relaunch calls in each turn."""
        if self.processor:
            self.processor.close()
            self.processor = None

    def prepare(self):
        """Before the order to sleep; not measured."""

    def sleep(self):
        raise NotImplementedError

    def asleep(self):
        """After the worker sleeps, and not measured. Bytes that remain in RAM, and bytes on disk."""
        return anonymous(self.pid), 0

    def wake(self, kind):
        """The request comes first, as in real use; then the order. Returns at the answer's first byte."""
        self.connection.send(kind)
        self.order()
        self.connection.first_byte()

    def order(self):
        os.kill(self.pid, signal.SIGCONT)

    def settle(self):
        """Until all memory is back and the worker is as it was; not measured."""


class Stopped(Peer):
    def sleep(self):
        stop(self.pid)


class Swapped(Peer):
    """Paged out by MADV_PAGEOUT, then by the group's reclaim, so that the swap cache is empty as well."""

    def __init__(self, name, program, size, device):
        super().__init__(name, program, size)
        self.device = device

    def start(self):
        self.group = swap.MemoryGroup()
        self.spawn(self.group.enter)

    def end(self):
        super().end()
        self.group.close()

    def prepare(self):
        self.device.on()
        self.before = self.device.in_ram()

    def sleep(self):
        stop(self.pid)
        swap.page_out(self.pid)
        self.group.reclaim()

    def asleep(self):
        with open(f"/proc/{self.pid}/smaps_rollup") as file:
            swapped = next(int(row.split()[1]) << 10 for row in file if row.startswith("Swap:"))
        on_disk = swapped if isinstance(self.device, swap.SwapFile) else 0
        return anonymous(self.pid) + max(0, self.device.in_ram() - self.before), on_disk

    def settle(self):
        self.device.off()


class Relaunched(Peer):
    def sleep(self):
        self.end()

    def asleep(self):
        return 0, 0

    def wake(self, kind):
        self.start()
        self.connection = self.program.connect(self.port, self.size)
        self.connection.send(kind)
        self.connection.first_byte()


class Memcr(Peer):
    """A memcr service for this worker; its protocol is four bytes of command, four of pid, four of answer."""
    CHECKPOINT, RESTORE = 100, 101

    def __init__(self, name, program, size, executable, flags, is_dropped=False):
        super().__init__(name, program, size)
        self.executable, self.flags, self.is_dropped = executable, flags, is_dropped

    def start(self):
        super().start()
        self.directory = tempfile.mkdtemp(prefix="dormouse-peers-memcr-")
        self.socket = os.path.join(self.directory, "socket")
        self.images = os.path.join(self.directory, "images")
        os.mkdir(self.images)
        self.service = subprocess.Popen([self.executable, "-l", self.socket, "-d", self.images] + self.flags,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(1000):
            if os.path.exists(self.socket):
                return
            time.sleep(0.01)

    def request(self, code):
        line = socket.socket(socket.AF_UNIX)
        line.connect(self.socket)
        line.sendall(code.to_bytes(4, "little") + self.pid.to_bytes(4, "little"))
        return line

    @staticmethod
    def answer(line):
        with line:
            if line.recv(4) != bytes(4):
                raise RuntimeError("memcr has failed")

    def sleep(self):
        self.answer(self.request(self.CHECKPOINT))

    def asleep(self):
        if self.is_dropped:
            drop(files(self.images))
        return anonymous(self.pid), sum(os.path.getsize(path) for path in files(self.images))

    def order(self):
        self.line = self.request(self.RESTORE)

    def settle(self):
        self.answer(self.line)

    def end(self):
        super().end()
        self.service.kill()
        self.service.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class Dormouse(Peer):
    def __init__(self, name, program, size, resume="auto", is_dropped=False, keeps_working_set=False, algorithm="zstd"):
        super().__init__(name, program, size)
        self.resume, self.is_dropped, self.keeps_working_set = resume, is_dropped, keeps_working_set
        self.algorithm = algorithm
        self.overrides = {}
        self.pause = 0

    def prepare(self):
        time.sleep(self.pause)

    def start(self):
        """The default policy's settings, without its limits: every order to sleep is carried out."""
        self.daemon = Daemon({
            "policy_overrides": {
                "background": {"suspend_after": "never"},
                "hibernate": {"after": "never", "cooldown": "0s", "max_footprint": "unlimited", "resume": self.resume,
                              "only_if_faster_than_relaunch": False, "keep_working_set": self.keeps_working_set,
                              "compression": {"algorithm": self.algorithm},
                              "disk": {"budget": "20GB", "daily_writes": "1000GB"}}, **self.overrides},
            "workers": {"web": {"command": self.command(), "readiness": {"tcp": self.port}}}}, user=self.user)
        self.pid = self.daemon.pid_of("web")

    def launch(self):
        super().launch()
        for _ in range(600):
            if self.daemon.worker("web")["state"] != "launching":
                break
            time.sleep(0.05)

    def end(self):
        self.daemon.close()

    def sleep(self):
        self.daemon.ask("hibernate", "web")

    def asleep(self):
        # Within 2 s of an answer in the same tick as its request, the worker is woken once more (docs/waking.md). A fast
        # program's next turns begin later: otherwise all of these sleeps would count as one turn's processor time.
        for _ in range(60):
            time.sleep(0.05)
            if self.daemon.worker("web")["state"] == "hibernated":
                break
            self.pause = 2.1
            self.daemon.ask("hibernate", "web")
        if self.is_dropped:
            drop(path for path in files(os.path.join(self.daemon.directory, "state"))
                 if os.path.isfile(path) and os.path.getsize(path) > 100_000)
        worker = self.daemon.worker("web")
        return anonymous(self.pid), worker.get("imageSize", 0) + worker.get("baseSize", 0)

    def order(self):
        self.line = self.daemon.send("wake", "web")

    def settle(self):
        self.daemon.answer(self.line)
