#!/usr/bin/env python3
"""Dormouse beside its peers, in turns: SIGCONT alone, the kernel's swap on zram and on a file, memcr, a relaunch.
See README.md here."""
import argparse
import contextlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from bench import Daemon, machine
from Peers import swap

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Peers", "objects.py")
KINDS = {"light": "/", "all": "/all"}
WARM_UP = 3


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


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


class Connection:
    def __init__(self, port):
        end = time.monotonic() + 60
        while True:
            try:
                self.line = socket.create_connection(("127.0.0.1", port), 60)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.002)
        self.line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, path):
        self.line.sendall(f"GET {path} HTTP/1.1\r\nHost: peers\r\n\r\n".encode())

    def first_byte(self):
        if self.line.recv(1) != b"H":
            raise RuntimeError("the connection has ended")

    def rest(self):
        """The remaining answer; its end is known by its length."""
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.line.recv(65536)
        head, body = answer.split(b"\r\n\r\n", 1)
        if b" 200 " not in head:
            raise RuntimeError(head.decode())
        length = int(head.lower().split(b"content-length:")[1].split(b"\r")[0])
        while len(body) < length:
            body += self.line.recv(65536)


class Peer:
    """One way to put a worker to sleep. The worker is the same program for each, with the same state."""

    def __init__(self, name, objects):
        self.name, self.objects = name, objects
        self.results = {kind: {"wake": [], "sleep": [], "ram": [], "disk": []} for kind in KINDS}
        self.errors = []

    def command(self):
        return [sys.executable, WORKER, str(self.objects), str(self.port)]

    def launch(self):
        self.port = free_port()
        self.start()
        self.connection = Connection(self.port)
        self.connection.send("/all")
        self.connection.first_byte()
        self.connection.rest()

    def start(self):
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL)
        self.pid = self.process.pid

    def end(self):
        self.process.kill()
        self.process.wait()

    def prepare(self):
        """Before the order to sleep; not measured."""

    def sleep(self):
        raise NotImplementedError

    def asleep(self):
        """After the worker sleeps, and not measured. Bytes that remain in RAM, and bytes on disk."""
        return anonymous(self.pid), 0

    def wake(self, path):
        """The request comes first, as in real use; then the order. Returns at the answer's first byte."""
        self.connection.send(path)
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

    def __init__(self, name, objects, device):
        super().__init__(name, objects)
        self.device = device

    def start(self):
        self.group = swap.MemoryGroup()
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, preexec_fn=self.group.enter)
        self.pid = self.process.pid

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

    def wake(self, path):
        self.start()
        self.connection = Connection(self.port)
        self.connection.send(path)
        self.connection.first_byte()


class Memcr(Peer):
    """A memcr service for this worker; its protocol is four bytes of command, four of pid, four of answer."""
    CHECKPOINT, RESTORE = 100, 101

    def __init__(self, name, objects, executable, flags, is_dropped=False):
        super().__init__(name, objects)
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
    def __init__(self, name, objects, resume="auto", is_dropped=False):
        super().__init__(name, objects)
        self.resume, self.is_dropped = resume, is_dropped

    def start(self):
        """The default policy's settings, without its limits: every order to sleep is carried out."""
        self.daemon = Daemon({
            "policy_overrides": {
                "background": {"suspend_after": "never"},
                "hibernate": {"after": "never", "cooldown": "0s", "max_footprint": "unlimited", "resume": self.resume,
                              "only_if_faster_than_relaunch": False,
                              "disk": {"budget": "20GB", "daily_writes": "1000GB"}}},
            "workers": {"web": {"command": self.command(), "readiness": {"tcp": self.port}}}})
        while "pid" not in self.daemon.worker("web"):
            time.sleep(0.02)
        self.pid = self.daemon.worker("web")["pid"]

    def end(self):
        self.daemon.close()

    def sleep(self):
        self.daemon.ask("hibernate", "web")

    def asleep(self):
        if self.is_dropped:
            drop(path for path in files(os.path.join(self.daemon.directory, "state"))
                 if os.path.isfile(path) and os.path.getsize(path) > 100_000)
        worker = self.daemon.worker("web")
        return anonymous(self.pid), worker.get("imageSize", 0) + worker.get("baseSize", 0)

    def order(self):
        self.line = self.daemon.send("wake", "web")

    def settle(self):
        self.daemon.answer(self.line)


def turn(peer, path):
    """One sleep and one wake: milliseconds to wake and to sleep, bytes in RAM and on disk meanwhile."""
    peer.prepare()
    start = time.perf_counter()
    peer.sleep()
    slept = (time.perf_counter() - start) * 1000
    ram, disk = peer.asleep()
    time.sleep(0.02)
    start = time.perf_counter()
    peer.wake(path)
    woken = (time.perf_counter() - start) * 1000
    peer.connection.rest()
    peer.settle()
    time.sleep(0.05)
    return {"wake": woken, "sleep": slept, "ram": ram, "disk": disk}


def measure(peers, kind, rounds):
    """Each peer has its turn in each round, and each round begins with another one."""
    for peer in peers:
        peer.launch()
    size = max(anonymous(peer.pid) for peer in peers)
    broken = set()
    for number in range(WARM_UP + rounds):
        for place in range(len(peers)):
            peer = peers[(place + number) % len(peers)]
            if peer in broken:
                continue
            try:
                figures = turn(peer, KINDS[kind])
            except (OSError, RuntimeError, swap.Unavailable) as error:
                peer.errors.append(f"{kind}: {error}")
                broken.add(peer)
                if isinstance(peer, Swapped) and peer.device.is_on():
                    peer.device.off()
                continue
            if number >= WARM_UP:
                for key, value in figures.items():
                    peer.results[kind][key].append(value)
    return size


def finish(peers):
    for peer in peers:
        with contextlib.suppress(OSError, RuntimeError, AttributeError, subprocess.SubprocessError):
            peer.end()


def p95(values):
    """By nearest rank, as `dormouse bench`."""
    return sorted(values)[-(-len(values) * 95 // 100) - 1]


def milliseconds(values):
    return f"{statistics.median(values):.1f} ({p95(values):.1f})" if values else "–"


def megabytes(values):
    return f"{statistics.median(values) / 1e6:.1f}" if values else "–"


def table(peers, size, rounds, load):
    print(f"\n{peers[0].objects} objects, {size / 1e6:.0f} MB, {rounds} rounds, load {load} "
          f"to {os.getloadavg()[0]:.1f}; ms, median (p95); MB\n")
    print("| | wake, light request | wake, all objects | to sleep | stays in RAM | on disk |\n|---|---:|---:|---:|---:|---:|")
    for peer in peers:
        light, everything = peer.results["light"], peer.results["all"]
        print(f"| {peer.name} | {milliseconds(light['wake'])} | {milliseconds(everything['wake'])} "
              f"| {milliseconds(light['sleep'] + everything['sleep'])} | {megabytes(light['ram'] + everything['ram'])} "
              f"| {megabytes(light['disk'] + everything['disk'])} |")
    for peer in peers:
        for error in peer.errors:
            print(f"\n{peer.name}: not measured to the end: {error}")
    sys.stdout.flush()


def make_peers(objects, options, devices):
    peers = [
        Stopped("SIGCONT alone", objects),
        Dormouse("Dormouse, `auto` (default)", objects),
        Dormouse("Dormouse, `auto`, image not in the page cache", objects, is_dropped=True),
        Dormouse("Dormouse, `eager`", objects, "eager"),
        Dormouse("Dormouse, `lazy`", objects, "lazy")]
    if options.memcr:
        peers += [
            Memcr("memcr, lz4", objects, options.memcr, ["-z", "lz4"]),
            Memcr("memcr, lz4, file not in the page cache", objects, options.memcr, ["-z", "lz4"], is_dropped=True),
            Memcr("memcr, zstd, MD5", objects, options.memcr, ["-z", "zstd", "-c"])]
    peers += [Swapped(name, objects, device) for name, device in devices]
    peers.append(Relaunched("relaunch", objects))
    return [peer for peer in peers if not options.only or any(word in peer.name for word in options.only)]


def make_devices(options, stack):
    """The kernel's swap, where the machine allows it. Says what is left out, and why."""
    devices = []
    if options.no_swap:
        return devices
    try:
        if os.geteuid() != 0:
            raise swap.Unavailable("needs root")
        with open("/proc/swaps") as file:
            if len(file.readlines()) > 1:
                raise swap.Unavailable("other swap is on, and pages would be written to both; `swapoff -a` first")
        swap.MemoryGroup().close()
        directory = swap.filesystem_directory()
        stack.callback(swap.remove_directory, directory)
    except swap.Unavailable as error:
        print(f"left out: zram and a swap file: {error}")
        return devices
    for name, make in (("zram", lambda: swap.Zram(options.swap_megabytes, options.zram_algorithm)),
                       ("swap file", lambda: swap.SwapFile(directory, options.swap_megabytes))):
        try:
            device = make()
        except swap.Unavailable as error:
            print(f"left out: {name}: {error}")
            continue
        stack.callback(device.close)
        devices.append((f"zram ({device.algorithm})" if name == "zram" else name, device))
    return devices


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="DORMOUSE=FILE in the environment names the executable. Swap needs root, swapon "
        "and a memory cgroup; where these are missing, the script says so and leaves its rows out.")
    parser.add_argument("--rounds", type=int, default=15, help=f"measured rounds, after {WARM_UP} that aren't (15)")
    parser.add_argument("--objects", type=int, nargs="+", default=[13000, 110000, 375000],
                        help="sizes of the worker: 13000 are about 15 MB, 110000 are 45 MB, 375000 are 127 MB")
    parser.add_argument("--memcr", metavar="FILE", help="memcr's executable, built with COMPRESS_LZ4=1 COMPRESS_ZSTD=1 "
                        "CHECKSUM_MD5=1; without it, memcr is left out")
    parser.add_argument("--no-swap", action="store_true", help="leave zram and the swap file out")
    parser.add_argument("--swap-megabytes", type=int, default=512, help="size of each swap area (512)")
    parser.add_argument("--zram-algorithm", help="for example lz4 or zstd; the kernel's default without it")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="rows whose name contains one of these words")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that swap is switched off
    print(machine())
    with contextlib.ExitStack() as stack:
        devices = make_devices(options, stack)
        for objects in options.objects:
            load = f"{os.getloadavg()[0]:.1f}"
            peers = make_peers(objects, options, devices)
            size = 0
            for kind in KINDS:
                try:
                    size = max(size, measure(peers, kind, options.rounds))
                finally:
                    finish(peers)
            table(peers, size, options.rounds, load)


if __name__ == "__main__":
    main()
