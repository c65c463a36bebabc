#!/usr/bin/env python3
"""Does any worker lose a byte when the daemon is killed at random? See README.md here.

Every worker has a twin outside of Dormouse: the same program with the same arguments, which
gets the same commands. After each hibernation, resume, interruption and recovery, both must give
the same answers, including checksums over all of their state."""
import argparse
import os
import random
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from bench import ROOT, Daemon, free_port, machine
from Peers import swap
from talk import Redis, Web

FIXTURES = os.path.join(ROOT, "Tests", "Fixtures")
PATIENCE = 60
# Sources/Hibernation/Service/FaultPoint.swift: the points at which a daemon can be made to end itself.
POINTS = [
    "stopped", "seized", "scanned", "captured", "committed", "scratch-mapped", "evicting", "evicted",
    "restored", "frozen", "detached", "rested", "writing-back", "written-back", "unlinked",
    "recovery-seized", "borrowed-again", "registers-back",
    # Of a resume with missing pages; each is passed often, so the first or a later time.
    *(f"{point}@{time}" for time in (1, 2, 3) for point in (
        "fill-marked", "registered", "fill-prepared", "filling", "event-read", "filled",
        "unregistered", "thawed"))]
# Of trims by userfaultfd (`--trims`).
TRIM_POINTS = [f"{point}@{time}" for time in (1, 2, 3) for point in (
    "trimmed", "trim-handed-over", "trim-unregistered", "child-filled", "handing-over", "synced", "committed",
    "registered", "event-read")]


class Lost(Exception):
    """A worker was lost or changed."""


class Torture:
    """Tests/Fixtures/torture.c: all kinds of memory, 28 threads in all kinds of system calls."""

    def __init__(self, directory, binary):
        self.pipes = [os.path.join(directory, name) for name in ("in", "out")]
        for pipe in self.pipes:
            os.mkfifo(pipe)
        # Opened for both directions, so that neither end ever gets a hang-up.
        self.command = ["sh", "-c", 'exec "$0" 12 28 7 <>"$1" 1<>"$2"', binary, *self.pipes]

    def connect(self):
        self.into, self.out = (os.open(pipe, os.O_RDWR) for pipe in self.pipes)
        self.receive()  # `ready PID`

    def send(self, line):
        os.write(self.into, line.encode() + b"\n")

    def receive(self):
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([self.out], [], [], PATIENCE)[0]:
                raise Lost(f"no answer within {PATIENCE} s")
            line += os.read(self.out, 1)
        return line.decode().strip()

    def change(self, chance):
        if chance.random() < 0.2:
            return "collapse"
        return f"touch {chance.randrange(1 << 30)}"

    proof = "sum"
    last_words = "errors"

    def difference(self, other):
        """The pages that differ, with their content."""
        pages = []
        for one in (self, other):
            path = one.pipes[0] + ".detail"
            one.send(f"detail {path}")
            if one.receive() != "detailed":
                return ""
            with open(path) as file:
                pages.append(file.read().splitlines())
        pairs = [(mine, theirs) for mine, theirs in zip(*pages)
                 if mine.split(" @")[0] != theirs.split(" @")[0]]
        return "".join(f"\n  {mine} instead of {theirs.split(': ')[-1]}" for mine, theirs in
                       pairs[:20]) + f"\n  {len(pairs)} pages or blocks differ"


class Churn(Torture):
    """Tests/Fixtures/churn.c: forks, moves, drops and unmaps memory on several threads at once."""

    def __init__(self, directory, binary):
        super().__init__(directory, binary)
        self.command[2] = self.command[2].replace("12 28 7", "4 8 128")

    def change(self, chance):
        return f"churn {chance.randrange(1 << 30)}"

    proof = last_words = "verify"
    difference = None


class Store:
    """redis with data; DEBUG DIGEST is a checksum over all of it."""

    def __init__(self, directory, binary):
        self.port = free_port()
        self.command = [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                        "--appendonly", "no", "--enable-debug-command", "yes"]

    def connect(self):
        self.line = Redis(self.port, PATIENCE)
        self.line.fill()

    def send(self, line):
        self.line.send(*line.split())

    def receive(self):
        return self.line.reply()

    def change(self, chance):
        key = f"key-{chance.randrange(20000)}"
        return chance.choice([f"SET {key} {chance.randbytes(300).hex()}", f"DEL {key}",
                              f"INCR counter-{chance.randrange(5)}",
                              f"RPUSH list-{chance.randrange(9)} {chance.random()}"])

    proof = "DEBUG DIGEST"
    last_words = "DBSIZE"


class Notes:
    """python or node over HTTP; /digest reads every object."""

    def __init__(self, directory, *command):
        self.port = free_port()
        self.command = [*command, "--port", str(self.port)]

    def connect(self):
        self.line = Web(self.port, PATIENCE)

    def send(self, line):
        self.line.socket.sendall(f"{line} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def receive(self):
        stream, length = self.line.stream, 0
        if not stream.readline():
            raise ConnectionError("it hung up")
        for header in iter(stream.readline, b"\r\n"):
            name, _, value = header.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return stream.read(length).decode().strip()

    def change(self, chance):
        return chance.choice([f"POST /put?k{chance.randrange(500)}={chance.randbytes(60).hex()}",
                              "GET /count"])

    proof = "GET /digest"
    last_words = "GET /count"


class Waits:
    """Tests/Fixtures/waits.py: one that starts programs, or waits with time-outs, or watches files."""

    def __init__(self, directory, kind):
        self.kind, self.port = kind, free_port()
        self.command = [sys.executable, "-B", os.path.join(FIXTURES, "waits.py"),
                        "--port", str(self.port)]

    def connect(self):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.line = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        self.stream = self.line.makefile("r")

    def send(self, line):
        self.line.sendall(line.encode() + b"\n")

    def receive(self):
        line = self.stream.readline()
        if not line:
            raise ConnectionError("it hung up")
        return line.strip()

    def change(self, chance):
        return {"spawn": f"spawn {chance.randrange(1, 6)}",
                "wait": f"wait {chance.randrange(1, 120)}",
                "watch": f"watch f{chance.randrange(1000)}"}[self.kind]

    proof = last_words = "sum"


def is_pager(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[1:2] == [b"pager"]
    except OSError:
        return False


def standby_pager(daemon):
    try:
        with open(f"/proc/{daemon}/task/{daemon}/children") as file:
            return next((int(pid) for pid in file.read().split() if is_pager(pid)), None)
    except OSError:
        return None


def end_pager(pid):
    """It may have ended by itself."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if is_pager(pid):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(pidfd)


class Faults:
    """What else fails, for one daemon's life each: no file can be opened; the disk of the state directory is full; a
    worker's record is lost or damaged, and is back for the next daemon. With a choice of its own: a seed has the
    same kills with and without them."""

    def __init__(self, seed, directory, kinds):
        self.chance = random.Random(f"faults {seed}")
        self.kinds = kinds
        self.counts = {kind: 0 for kind in kinds}
        self.state = None
        if "disk" in kinds:
            self.mount(directory)

    def mount(self, directory):
        disk, state = (os.path.join(directory, name) for name in ("disk", "state"))
        os.mkdir(state)
        with open(disk, "wb") as file:
            file.truncate(1 << 30)
        try:
            subprocess.run(["mkfs.ext4", "-q", "-m", "0", disk], check=True)
            subprocess.run(["mount", "-o", "loop", disk, state], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"chaos: without a full disk: {error}", file=sys.stderr)
            del self.counts["disk"]
            return
        self.state = state

    def choose(self):
        """None: nothing else fails in this life."""
        if not self.counts or self.chance.random() > 0.3:
            return None
        return self.chance.choice(sorted(self.counts))

    @property
    def filler(self):
        return os.path.join(self.state, "filler")

    def fill(self):
        self.counts["disk"] += 1
        with open(self.filler, "wb", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass

    def empty(self):
        if self.state and os.path.exists(self.filler):
            os.unlink(self.filler)

    def limit_descriptors(self, pid):
        self.counts["descriptors"] += 1
        try:
            most = max(int(number) for number in os.listdir(f"/proc/{pid}/fd"))
            hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (most + self.chance.randrange(12), hard))
        except (OSError, ValueError):
            pass  # It has ended.

    def damage(self, records):
        """A record's path and content, to be written back; None: there is none."""
        paths = [os.path.join(records, name) for name in sorted(os.listdir(records))
                 if name.endswith(".worker")]
        if not paths:
            return None
        self.counts["records"] += 1
        path = self.chance.choice(paths)
        with open(path, "rb") as file:
            whole = file.read()
        how = self.chance.choice(["removed", "empty", "flipped"])
        if how == "removed":
            os.unlink(path)
        else:
            damaged = bytearray(whole if how == "flipped" else b"")
            if damaged:
                damaged[self.chance.randrange(len(damaged))] ^= 4
            with open(path, "wb") as file:
                file.write(damaged)
        return path, whole

    def close(self):
        if self.state:
            subprocess.run(["umount", "-l", self.state])


def resident(pid):
    """Bytes of VmRSS."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(row.split()[1]) << 10 for row in file if row.startswith("VmRSS"))


class Shortage:
    """Again and again: a swap file is on, the workers have less memory than they use for a while, then enough, and the
    file is off. With a choice of its own, as `Faults`."""
    MEGABYTES = 1024

    def __init__(self, seed, directory):
        self.chance = random.Random(f"shortage {seed}")
        self.count = 0
        self.group = swap.MemoryGroup()
        if not self.group.isv1:  # A worker has only one of version 2, which is the daemon's.
            self.group.close()
            raise swap.Unavailable("memory cgroups of version 1 are needed")
        self.file = swap.SwapFile(directory, self.MEGABYTES)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        # All of their memory is in RAM, and what they always need has room in half of it.
        most = sum(resident(pid) for pid in self.group.processes())
        while not self.over.wait(self.chance.uniform(1, 8)):
            self.file.on()
            try:
                # The kernel may refuse: it can't write that much at once.
                self.group.limit(int(most * self.chance.uniform(0.5, 0.9)))
                self.count += 1
                self.over.wait(self.chance.uniform(0.5, 4))
            except OSError:
                pass
            self.group.limit(-1)
            if self.chance.random() < 0.2:  # The workers' pages stay in swap for a while.
                self.over.wait(self.chance.uniform(1, 8))
            self.off()

    def off(self):
        for _ in range(100):
            try:
                return self.file.off()
            except swap.Unavailable:  # A page is being freed or read at this moment.
                time.sleep(0.1)
        raise Lost("the swap file can't be switched off")

    def close(self):
        self.over.set()
        if self.thread.is_alive():
            self.thread.join()
        self.group.limit(-1)
        self.file.close()
        for pid in self.group.processes():
            swap.write("/sys/fs/cgroup/memory/cgroup.procs", str(pid))
        self.group.close()


class Keeper:
    """Runs a daemon, kills it at random, and starts the next one on the same state directory."""

    def __init__(self, workers, rest, options, faults):
        self.pace, self.faults = options.pace, faults
        self.named = POINTS + (TRIM_POINTS if options.trims else [])
        self.chance = random.Random(options.seed)
        self.environment = dict(os.environ)
        if rest == "traced":
            self.environment["DORMOUSE_CGROUP"] = "/proc/nowhere"
        self.daemon = Daemon({
            "policy": os.path.join(ROOT, "Policies", "ios-5.yaml"),
            "policy_overrides": {
                "memory": {"budget": "32GB"}, "foreground": {"max": "unlimited"},
                "background": {"suspend_after": "1h"}, "watchdog": {"launch": "2m"},
                "hibernate": {"cooldown": "0s", "max_footprint": "unlimited", "min_footprint": "0B",
                              "after": "never", "only_if_faster_than_relaunch": False, "encrypt": options.encrypt,
                              "disk": {"daily_writes": "9000GB"}},
                "trim": {"mechanism": "userfaultfd", "min_gain": "0B"}},
            "workers": {w.name: {"command": w.program.command, "autostart": False}
                        for w in workers}}, self.environment, state=faults.state)
        self.kills, self.points, self.starts = 0, 0, 1
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        point = None
        while not self.over.wait(0):
            fault = self.faults.choose()
            if fault == "disk":
                self.faults.fill()
            elif fault == "descriptors":
                self.faults.limit_descriptors(self.daemon.process.pid)
            if point:
                self.await_end(self.pace)
            else:
                # Sometimes at once, so that a daemon is killed while it recovers.
                pause = self.chance.choice([0.02, 0.1, 0.4, 1.5]) * self.chance.random()
                self.over.wait(pause * self.pace)
            if self.daemon.process.poll() is None:
                self.kill()
                self.kills += 1
            elif self.daemon.process.returncode == -signal.SIGKILL:
                self.points += 1
            else:
                print(f"the daemon ended with {self.daemon.process.returncode}", file=sys.stderr)
            self.daemon.process.wait()
            self.faults.empty()
            if fault == "records":
                self.live_without_record()
            point = self.chance.choice(self.named) if self.chance.random() < 0.5 else None
            self.begin(point)
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.begin(None)  # this one isn't killed, for the last checks

    def live_without_record(self):
        saved = self.faults.damage(os.path.join(self.daemon.state, "workers"))
        if not saved:
            return
        self.begin(None)
        self.over.wait(self.faults.chance.random() * self.pace)
        self.daemon.process.kill()
        self.daemon.process.wait()
        path, whole = saved
        with open(path + ".back", "wb") as file:
            file.write(whole)
        os.rename(path + ".back", path)

    def kill(self):
        """The daemon; and sometimes first, or a moment later, the pager that stands by for it."""
        pager, when = standby_pager(self.daemon.process.pid), self.chance.random()
        if pager and when < 0.2:
            os.kill(pager, signal.SIGKILL)
        self.daemon.process.kill()
        if pager and when > 0.6:
            time.sleep(self.chance.random() * 0.03)
            end_pager(pager)

    def await_end(self, seconds):
        end = time.monotonic() + seconds
        while self.daemon.process.poll() is None and time.monotonic() < end:
            if self.over.wait(0.01):
                return

    def begin(self, point):
        environment = dict(self.environment)
        if point:
            environment["DORMOUSE_FAULT"] = point
        self.daemon.begin(environment)
        self.starts += 1

    def log(self):
        with open(self.daemon.log.name, errors="replace") as file:
            return file.read().splitlines()


class Worker:
    def __init__(self, name, make, directory, trims):
        self.name = name
        places = [os.path.join(directory, f"{name}-{role}") for role in ("worker", "twin")]
        for place in places:
            os.mkdir(place)
        self.program, self.reference = (make(place) for place in places)
        self.rounds = self.hibernated = self.interrupted = self.trims_done = 0
        self.trims = trims
        self.refusals, self.failures, self.pid, self.note = {}, [], None, ""

    def begin(self, daemon, shortage):
        self.twin = subprocess.Popen(
            self.reference.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            start_new_session=True)
        daemon.ask("start", self.name)
        self.pid = daemon.worker(self.name)["pid"]
        if shortage:
            shortage.group.enter(self.pid)
        for one in (self.program, self.reference):
            one.connect()

    def ask_both(self, line):
        for one in (self.program, self.reference):
            one.send(line)
        self.compare(line)

    def compare(self, line):
        said, wanted = self.program.receive(), self.reference.receive()
        if said != wanted:
            detail = self.program.difference(self.reference) \
                if getattr(self.program, "difference", None) else ""
            raise Lost(f"`{line}` gave `{said[:80]}`, and `{wanted[:80]}` of its twin{detail}")

    def one_round(self, keeper, chance):
        for _ in range(chance.randrange(4)):
            self.ask_both(self.program.change(chance))
        if self.trims and not self.trimmed(keeper, chance):
            return
        # Some requests are sent while it is hibernated, and answered when it has resumed.
        pending = [self.program.change(chance) for _ in range(chance.randrange(3))]
        for line in pending:
            self.program.send(line)
            self.reference.send(line)
        self.order(keeper, "hibernate")
        self.order(keeper, "wake", insist=True)
        for line in pending:
            self.compare(line)
        self.ask_both(self.program.proof)
        self.rounds += 1

    def trimmed(self, keeper, chance):
        """Trims it a few times while it runs. Returns false if it isn't hibernated afterwards."""
        for _ in range(chance.randrange(4)):
            self.order(keeper, "trim")
            for _ in range(chance.randrange(3)):
                self.ask_both(self.program.change(chance))
            if chance.random() < 0.2:
                self.ask_both(self.program.proof)
            if chance.random() < 0.1:
                self.order(keeper, "fill")
            if chance.random() < 0.05:
                time.sleep(14)  # A pager without a fault for 11 s needs no thread.
        if chance.random() < 0.5:
            return True
        self.ask_both(self.program.proof)
        self.rounds += 1
        return False

    def order(self, keeper, verb, insist=False):
        """True when the verb has succeeded. `insist`: repeats it until it has, even if daemons are killed."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                keeper.daemon.ask(verb, self.name)
                self.hibernated += verb == "hibernate"
                self.trims_done += verb == "trim"
                return
            except (OSError, ValueError):  # the daemon has ended, before the request or during it
                self.interrupted += verb == "hibernate"
                if not insist:
                    return
            except RuntimeError as refusal:
                text = str(refusal).split(": ", 1)[-1]
                self.refusals[text] = self.refusals.get(text, 0) + 1
                if not insist:
                    return
            self.check_lives()
            if time.monotonic() > end:
                raise Lost(f"it couldn't be woken within {PATIENCE} s")
            time.sleep(0.01)

    def check_lives(self):
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] in "ZX":
                    raise Lost(f"process {self.pid} has ended")
        except FileNotFoundError:
            raise Lost(f"process {self.pid} was removed") from None

    def run(self, keeper, seed, goes_on):
        chance = random.Random(seed)
        try:
            while goes_on():
                self.one_round(keeper, chance)
        except Exception as error:  # noqa: BLE001: whatever it is, it is a failure of this worker
            self.failures.append(f"round {self.rounds}: {type(error).__name__}: {error}")

    def finish(self, daemon):
        if self.failures:
            return
        try:
            self.check_lives()
            self.ask_both(self.program.proof)
            self.program.send(self.program.last_words)
            self.note = self.program.receive()
            if daemon.worker(self.name)["pid"] != self.pid:
                raise Lost("the daemon names another process")
        except Exception as error:  # noqa: BLE001
            self.failures.append(f"at the end: {type(error).__name__}: {error}")

    def end(self):
        self.twin.kill()
        self.twin.wait()


def compiled(directory, name):
    target = os.path.join(directory, name)
    subprocess.run(["cc", "-std=c11", "-O1", "-pthread", f"-DPAGE_BYTES={os.sysconf('SC_PAGESIZE')}", "-o", target,
                    os.path.join(FIXTURES, f"{name}.c")], check=True)
    return target


def programs(directory):
    torture, churn = (compiled(directory, name) for name in ("torture", "churn"))
    yield "torture", lambda place: Torture(place, torture)
    yield "churn", lambda place: Churn(place, churn)
    yield "python", lambda place: Notes(place, sys.executable, os.path.join(
        FIXTURES, "http_state.py"), "--megabytes", "4")
    for kind in ("spawn", "wait", "watch"):
        yield kind, lambda place, kind=kind: Waits(place, kind)
    if shutil.which("redis-server"):
        yield "redis", lambda place: Store(place, shutil.which("redis-server"))
    if shutil.which("node"):
        yield "node", lambda place: Notes(place, shutil.which("node"), os.path.join(
            FIXTURES, "http_state.js"), "--megabytes", "4")


def play(options, rest, rounds, seconds, directory):
    """Rounds until one limit is reached; the workers and the keeper, with what they have seen."""
    os.mkdir(directory)
    workers = [Worker(name, make, directory, options.trims) for name, make in programs(directory)
               if not options.only or name in options.only.split(",")]
    kinds = [kind for kind in options.faults.split(",") if kind]
    faults = Faults(options.seed, directory, [kind for kind in kinds if kind != "memory"])
    keeper = Keeper(workers, rest, options, faults)
    shortage = Shortage(options.seed, directory) if "memory" in kinds else None
    try:
        for worker in workers:
            worker.begin(keeper.daemon, shortage)
        if shortage:
            shortage.thread.start()
        end = time.monotonic() + seconds
        threads = [
            threading.Thread(target=worker.run, args=(
                keeper, f"{options.seed} {worker.name}",
                lambda: sum(w.rounds for w in workers) < rounds and time.monotonic() < end))
            for worker in workers]
        for thread in [keeper.thread, *threads]:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)
                if sys.stderr.isatty():
                    print(f"\r{rest}: {sum(w.rounds for w in workers)} of {rounds} rounds, "
                          f"{keeper.kills + keeper.points} daemons dead", end="", file=sys.stderr)
        keeper.over.set()
        keeper.thread.join()
        for worker in workers:
            worker.finish(keeper.daemon)
    finally:
        keeper.over.set()
        if keeper.thread.is_alive():
            keeper.thread.join()
        if shortage:
            shortage.close()
            faults.counts["memory (times, beside all lives)"] = shortage.count
        for worker in workers:
            worker.end()
            if worker.failures:  # The directory is removed.
                with open(os.path.join(directory, "state", "logs", f"{worker.name}.log"), errors="replace") as file:
                    last = "".join(file.readlines()[-10:])
                worker.failures[-1] = f"{worker.failures[-1]}; its log ends with:\n{last}"
        log = keeper.log()
        try:
            keeper.daemon.close()
        finally:
            faults.close()
    return workers, keeper, log


def report(rest, workers, keeper, log, took):
    failed = 0
    print(f"\n## Resting {rest}: {sum(w.rounds for w in workers)} rounds in {took:.0f} s\n")
    print(f"{keeper.kills} daemons were killed at random moments, {keeper.points} more at named "
          "points of the protocol.\n")
    if keeper.faults.counts:
        print("Lives in which something else failed: " + ", ".join(
            f"{kind} {count}" for kind, count in keeper.faults.counts.items()) + ".\n")
    print("| worker | rounds | hibernated | trimmed | interrupted | not done | lost or changed | last words |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for worker in workers:
        failed += len(worker.failures)
        print(f"| {worker.name} | {worker.rounds} | {worker.hibernated} | {worker.trims_done} | {worker.interrupted} | "
              f"{sum(worker.refusals.values())} | {len(worker.failures)} | {worker.note} |")
    reasons = sorted({(text, w.name, n) for w in workers for text, n in w.refusals.items()})
    if reasons:
        print("\nNot done, and why:\n")
        for text, name, count in reasons:
            print(f"- {name}, {count} times: {text}")
    for worker in workers:
        for failure in worker.failures:
            print(f"\n**{worker.name}**: {failure}\n\n```")
            print("\n".join([row for row in log if worker.name in row][-25:]) + "\n```")
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2000, help="of all workers together")
    parser.add_argument("--seconds", type=float, default=3600, help="a limit for all of it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--encrypt", action="store_true", help="with encrypted images")
    parser.add_argument("--trims", action="store_true", help="trims to images, too, while the workers run")
    parser.add_argument("--pace", type=float, default=1,
                        help="a daemon's life times this; more on a busy machine")
    parser.add_argument("--only", help="names of workers, with commas between them")
    parser.add_argument("--rest", choices=["frozen", "traced", "both"], default="both")
    parser.add_argument("--faults", default="descriptors,records" + (",disk" if os.geteuid() == 0 else ""),
                        help="what else fails: descriptors, disk (needs root), records; memory (root, cgroups of version "
                             "1): limits and swap, on and off; empty: nothing")
    parser.add_argument("--patience", type=float, default=PATIENCE,
                        help="seconds that an answer may take; more under emulation")
    options = parser.parse_args()
    globals()["PATIENCE"] = options.patience
    rests = ["frozen", "traced"] if options.rest == "both" else [options.rest]
    failed = 0
    print(f"# Chaos\n\n{machine()}\n\n`{' '.join(['Benchmarks/chaos.py', *sys.argv[1:]])}`; "
          f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="dormouse-chaos-") as directory:
        for rest in rests:
            start = time.monotonic()
            played = play(options, rest, options.rounds // len(rests),
                          options.seconds / len(rests), os.path.join(directory, rest))
            failed += report(rest, *played, time.monotonic() - start)
    print(f"\n**{'FAILED: ' + str(failed) if failed else 'No'} worker lost or changed.**")
    sys.exit(1 if failed else 0)


main()
