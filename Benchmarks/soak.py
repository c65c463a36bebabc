#!/usr/bin/env python3
"""Many workers are suspended, hibernated, restarted, and woken by connections, under load. Is a
request lost, a byte changed, a descriptor, process or zombie left, the daemon over its budget? Ends
with 1 if so. See README.md here."""
import argparse
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

from bench import ROOT, Daemon, free_port, machine

REQUEST = b"GET / HTTP/1.1\r\nHost: soak\r\n\r\n"


class Worker:
    def __init__(self, name, port):
        self.name, self.port = name, port
        self.lock = threading.Lock()
        self.answered = 0
        self.line = None

    def hang_up(self):
        if self.line:
            self.line.close()
        self.line = None

    def request(self, keep, patience=60):
        """Sends one more request; the error in the answer, or None."""
        line = self.line or socket.create_connection(("127.0.0.1", self.port), patience)
        self.line = line if keep else None
        line.settimeout(patience)
        line.sendall(REQUEST)
        text = b""
        while not text.endswith(b"\n") or b"\r\n\r\n" not in text:
            piece = line.recv(4096)
            if not piece:
                self.line = None
                raise OSError("hung up")
            text += piece
        if not keep:
            line.close()
        self.answered += 1
        count, word = text.rsplit(b"\r\n", 1)[1].split()
        if word != b"ok":
            return "its memory has changed"
        if int(count) != self.answered:
            return f"it has counted {int(count)} requests, not {self.answered}"
        return None


class Soak:
    def __init__(self, options, daemon, workers):
        self.options, self.daemon, self.workers = options, daemon, workers
        self.faults, self.times, self.counts = [], [], {}
        self.mutex = threading.Lock()
        self.end = time.monotonic() + options.seconds

    def note(self, key, number=1):
        with self.mutex:
            self.counts[key] = self.counts.get(key, 0) + number

    def fault(self, worker, text):
        with self.mutex:
            self.faults.append(f"{worker}: {text}")

    def clients(self, chance):
        """One client: four requests in five go to one worker in five."""
        popular = self.workers[:max(1, len(self.workers) // 5)]
        while time.monotonic() < self.end:
            worker = chance.choice(popular if chance.random() < 0.8 else self.workers)
            if not worker.lock.acquire(blocking=False):
                continue
            try:
                start = time.monotonic()
                wrong = worker.request(keep=chance.random() < 0.5)
                passed = time.monotonic() - start
                with self.mutex:
                    self.times.append(passed * 1000)
                if wrong:
                    self.fault(worker.name, wrong)
                    worker.answered = 0
            except OSError as error:
                self.fault(worker.name, f"a request was lost: {error!r}")
                worker.hang_up()
            finally:
                worker.lock.release()
            time.sleep(chance.expovariate(self.options.rate / self.options.clients))

    def people(self, chance):
        """Acts as an operator: suspends or hibernates workers at random, and sometimes restarts one."""
        while time.monotonic() < self.end:
            worker = chance.choice(self.workers)
            verb = chance.choices(["suspend", "hibernate", "restart", "ps"], [4, 10, 1, 2])[0]
            try:
                if verb == "restart":
                    with worker.lock:
                        worker.hang_up()
                        self.daemon.ask("stop", worker.name)
                        self.daemon.ask("start", worker.name)
                        worker.answered = 0
                else:
                    self.daemon.ask(verb, worker.name if verb != "ps" else None)
                self.note(f"{verb} asked for")
            except RuntimeError as refusal:
                # A worker that a client wakes meanwhile refuses the verb with a sentence.
                self.note(f"{verb} refused")
                if verb in ("restart", "ps"):
                    self.fault(worker.name, f"{verb}: {refusal}")
                if self.options.verbose:
                    print(f"{verb} {worker.name}: {refusal}", file=sys.stderr)
            time.sleep(chance.expovariate(self.options.verbs))

    def watch(self):
        """The states of the workers, read once a second."""
        pid = self.daemon.process.pid
        while time.monotonic() < self.end:
            if self.daemon.process.poll() is not None:
                self.fault("daemon", f"it ended with {self.daemon.process.returncode}")
                self.end = 0
                return
            self.peak = max(getattr(self, "peak", 0), status_kb(pid, "VmRSS"))
            for worker in self.daemon.ask("ps")["workers"]:
                self.note(f"seen {worker['state']}")
            time.sleep(1)

    def run(self):
        seed = self.options.seed
        threads = [threading.Thread(target=self.clients, args=(random.Random(seed * 1000 + n),))
                   for n in range(self.options.clients)]
        threads.append(threading.Thread(target=self.people, args=(random.Random(seed),)))
        threads.append(threading.Thread(target=self.watch))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def status_kb(pid, key):
    with open(f"/proc/{pid}/status") as file:
        return next(int(row.split()[1]) for row in file if row.startswith(key + ":"))


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def processes_of(program):
    """pid and state of the processes that run the program, and of its zombies."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, rest = file.read().rsplit(")", 1)
            state = rest.split()[0]
            same = name.split("(", 1)[1] == os.path.basename(program)[:15]
            if same and (state == "Z" or os.readlink(f"/proc/{pid}/exe") == program):
                found.append((int(pid), state))
        except OSError:
            continue
    return found


def touch_all(soak):
    """Sends a request to each worker, which wakes all of them."""
    for worker in soak.workers:
        with worker.lock:
            try:
                if wrong := worker.request(keep=True):
                    soak.fault(worker.name, wrong)
            except OSError as error:
                soak.fault(worker.name, f"a request was lost: {error!r}")


def descriptors(pid):
    """The number of open descriptors of each kind."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        kind = re.sub(r"[0-9]+", "N", target.replace("/".join(target.split("/")[:3]), "")
                      if target.startswith("/tmp") else target)
        kind = re.sub(r"wN", "NAME", kind)
        found[kind] = found.get(kind, 0) + 1
    return found


def leaked(pid, before, workers, patience=20):
    """Kinds of descriptors of which there are more than before, and more than three for each worker: a
    sleeper has up to three epolls, and other descriptors come with its first sleep. A leak continues to grow."""
    end = time.monotonic() + patience
    while True:
        after = descriptors(pid)
        more = {kind: (before.get(kind, 0), count) for kind, count in after.items()
                if count > max(before.get(kind, 0), 3 * workers + 8)}
        if not more or time.monotonic() > end:
            return sum(after.values()), more
        time.sleep(0.1)


def asleep(program):
    return [pid for pid, state in processes_of(program) if state in "Tt"]


def soak(options, program):
    chance = random.Random(options.seed)
    ports = [free_port(chance) for _ in range(options.workers)]
    workers = [Worker(f"w{n:03}", port) for n, port in enumerate(ports)]
    daemon = Daemon({
        "policy": os.path.join(ROOT, "Policies", "server.yaml"),
        "policy_overrides": {
            # A termination because of other load on the machine is correct, but makes the result useless.
            "pressure": {"warning": "never", "urgent": "never",
                         "critical": {"available_below": "1%"}},
            "foreground": {"idle_after": "5s"}, "background": {"suspend_after": "2s"},
            "hibernate": {"after": "5s", "cooldown": "0s", "min_footprint": "64KB",
                          "only_if_faster_than_relaunch": False}},
        "workers": {w.name: {"command": [program, str(w.port), str(options.kilobytes)],
                             "readiness": {"log_line": "ready"}} for w in workers}})
    run = Soak(options, daemon, workers)
    pid = daemon.process.pid
    try:
        begin = time.monotonic()
        while time.monotonic() < begin + 120:
            states = [worker["state"] for worker in daemon.ask("ps")["workers"]]
            if "launching" not in states and "terminated" not in states:
                break
            time.sleep(0.2)
        started = time.monotonic() - begin
        touch_all(run)
        before, processor = descriptors(pid), processor_seconds(pid)
        run.end = time.monotonic() + options.seconds
        run.run()
        share = (processor_seconds(pid) - processor) / options.seconds * 100
        touch_all(run)
        after, more = leaked(pid, before, len(workers))
        if more:
            run.fault("daemon", f"descriptors leak, open before and after: {more}")
        if stopped := asleep(program):
            time.sleep(1)  # includes workers that fell asleep again meanwhile
            states = {w["pid"]: w["state"] for w in daemon.ask("ps")["workers"]}
            for one in set(stopped) & set(asleep(program)):
                if states.get(one) not in ("suspended", "hibernated"):
                    run.fault(f"pid {one}", f"is stopped, but {states.get(one)}")
        here = processes_of(program)
        if len(here) != len(workers) or any(state == "Z" for _, state in here):
            run.fault("processes", f"{len(here)} of {len(workers)}: {sorted(here)[:5]} …")
        if options.rss_limit and run.peak > options.rss_limit:
            run.fault("daemon", f"RSS {run.peak} KB is over {options.rss_limit} KB")
        report = {"rss": run.peak, "share": share, "descriptors": (sum(before.values()), after),
                  "started": started}
    finally:
        tell_of_faulty(run)
        for worker in workers:
            worker.hang_up()
        daemon.close()
    for one in processes_of(program):
        run.fault(f"pid {one[0]}", f"is left ({one[1]})")
    return run, report


def tell_of_faulty(run):
    """The daemon's log about the workers with errors."""
    with open(run.daemon.log.name) as file:
        rows = file.readlines()
    for name in dict.fromkeys(fault.split(":")[0] for fault in run.faults):
        for row in [row for row in rows if f" {name}: " in row][-12:]:
            print(row, end="", file=sys.stderr)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rate", type=float, default=100, help="requests a second, all clients")
    parser.add_argument("--verbs", type=float, default=5, help="verbs a second")
    parser.add_argument("--kilobytes", type=int, default=512, help="memory of a worker")
    parser.add_argument("--seed", type=int,
                        default=os.environ.get("DORMOUSE_TEST_SEED") or random.randrange(1 << 16))
    parser.add_argument("--rss-limit", type=int,
                        help="KB, for the daemon; 0: none, as for a debug build. Without: what a "
                             "hundred idle workers may cost, 16 KB for each further one, and 8 MB "
                             "of work under way, most of that pages of its program")
    parser.add_argument("--quiet", action="store_true", help="a line, and what is wrong")
    parser.add_argument("--verbose", action="store_true", help="every refusal of a verb")
    options = parser.parse_args()
    if options.rss_limit is None:
        options.rss_limit = (28 << 10) + 16 * max(0, options.workers - 100)
    with tempfile.TemporaryDirectory(prefix="dormouse-soak-") as directory:
        program = os.path.join(directory, f"soak-{os.getpid()}")
        subprocess.run(["cc", "-O2", "-o", program,
                        os.path.join(ROOT, "Tests", "Fixtures", "counter.c")], check=True)
        run, report = soak(options, program)
    verdict = "**Nothing lost, nothing left.**" if not run.faults else f"**{len(run.faults)} faults.**"
    if options.quiet:
        print(f"soak: {options.workers} workers, {options.seconds} s, {len(run.times)} requests, "
              f"seed {options.seed}: {verdict.strip('*')}")
    else:
        print(f"{machine()}\n\n`Benchmarks/soak.py --seconds {options.seconds} --workers "
              f"{options.workers} --rate {options.rate:g} --seed {options.seed}`\n")
        rows = [("requests answered", len(run.times)),
                ("answer, median / 99 % / longest", " / ".join(
                    f"{quantile(run.times, q):.1f}" for q in (0.5, 0.99, 1)) + " ms")]
        rows += sorted(run.counts.items())
        rows += [("workers started in", f"{report['started']:.1f} s"),
                 ("daemon, largest RSS", f"{report['rss']} KB"),
                 ("daemon, processor", f"{report['share']:.1f} % of a core"),
                 ("daemon, descriptors before / after", "{} / {}".format(*report["descriptors"]))]
        print("| | |\n|---|---:|")
        for name, value in rows:
            print(f"| {name} | {value} |")
        print(f"\n{verdict}")
    for fault in run.faults[:20]:
        print(f"- {fault}", file=sys.stderr if options.quiet else sys.stdout)
    sys.exit(1 if run.faults else 0)


if __name__ == "__main__":
    main()
