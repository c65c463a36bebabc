#!/usr/bin/env python3
"""Test suites of other projects, while the programs that they test are trimmed every few seconds (docs/trim.md).

    sudo python3 Benchmarks/suites.py cpython [TEST …] [--every 3] [--mechanism userfaultfd]
    sudo python3 Benchmarks/suites.py redis --source DIRECTORY [SUITE …]
    sudo python3 Benchmarks/suites.py postgresql [--seconds 60] [--source DIRECTORY]

cpython:    `python3 -m test` is the worker (Debian: libpython3.11-testsuite). It runs untouched first, then trimmed.
redis:      redis-server of a built source directory is the worker; its `runtest` asks it from outside.
postgresql: a server is the worker, and it and the daemon are those of the user `postgres`, because root's daemon trims no
            other user's workers; pgbench asks it, and pg_amcheck, sums and page checksums check the tables. With
            --source (src/test/regress of the server's version, and regress.so, built there), its regression tests ask it:
            `gcc -shared -fPIC -O2 -I/usr/include/postgresql/15/server regress.c -o regress.so`.
A suite passes here if it fails nowhere but where the untouched run does.
"""
import argparse
import collections
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from bench import Daemon, free_port, machine, tree
from Peers.pairs import journaled_trims, now

NAME = "suite"
# Long suites are cut off: seconds.
LIMIT = 3600
# These fail in this way of running them, with and without trims, or take many minutes without touching much memory.
WITHOUT = ["test_asyncio", "test_concurrent_futures", "test_tools", "test_peg_generator", "test_largefile", "test_gdb"]


class Trims(threading.Thread):
    """Trims the worker again and again, and kills the daemon now and then if that is wanted."""

    def __init__(self, daemon, options):
        super().__init__(daemon=True)
        self.daemon_process, self.options = daemon, options
        self.over = threading.Event()
        self.refusals = collections.Counter()
        self.count = self.kills = 0

    def run(self):
        killed = time.monotonic()
        while not self.over.wait(self.options.every):
            try:
                self.daemon_process.ask("trim", NAME)
                self.count += 1
            except (OSError, RuntimeError, ValueError) as error:
                self.refusals[re.sub(r"\d+", "N", f"{error}")] += 1
            if self.options.kill and time.monotonic() - killed > self.options.kill:
                self.daemon_process.process.kill()
                self.daemon_process.process.wait()
                self.daemon_process.begin()
                self.kills += 1
                killed = time.monotonic()

    def end(self):
        self.over.set()
        self.join(120)


@contextlib.contextmanager
def trimmed(worker, options, user=None):
    """Runs a worker that is trimmed all the time; prints at the end what was done to it."""
    daemon = Daemon({
        "policy": "standard",
        "policy_overrides": {
            "background": {"suspend_after": "never"},
            "hibernate": {"disk": {"budget": "20GB", "daily_writes": "1000GB"}},
            "trim": {"mechanism": options.mechanism, "min_gain": "0B"}},
        "workers": {NAME: {"restart": "no", **worker}}}, user=user)
    trims = Trims(daemon, options)
    start = now()
    try:
        daemon.pid_of(NAME)
        trims.start()
        yield daemon
        trims.end()
        done = journaled_trims(daemon, start).get(NAME, [])
        stops = [trim["stood still"] for trim in done] or [0]
        print(f"{len(done)} trims (in {time.monotonic() - begun:.0f} s); stood still {statistics.median(stops):.0f} ms, at "
              f"most {max(stops):.0f}; daemon killed {trims.kills} times; not trimmed: {dict(trims.refusals)}")
        with open(daemon.log.name) as log:
            events = collections.Counter(re.sub(r"\d+", "N", line.split(NAME, 1)[-1].strip())
                                         for line in log if "came back" in line or "error" in line.lower())
        print(f"the daemon's log: {dict(events)}")
    finally:
        trims.over.set()
        if options.log:
            shutil.copy(daemon.log.name, options.log)
        daemon.close()


# MARK: CPython

def failed_tests(text):
    """The names that `python3 -m test` lists as failed at its end, and whether it reached its end."""
    lists = re.findall(r"^\d+ tests? failed:\n((?:    .*\n)+)", text, re.M)
    return set(" ".join(lists).split()), bool(re.search(r"^(Tests result|== Tests result): ", text, re.M))


def cpython(options):
    names = options.names or ["-x", *WITHOUT]
    command = ["/usr/bin/python3", "-m", "test", "-w", "--timeout", "600", *names]
    outcomes = []
    for way in ("untouched", "trimmed"):
        with tempfile.TemporaryDirectory(prefix="dormouse-suite-") as place:
            output = os.path.join(place, "output")
            line = f"cd {place}; {' '.join(command)} >{output} 2>&1 </dev/null; echo >done"
            start = time.monotonic()
            if way == "untouched":
                subprocess.run(["sh", "-c", line], timeout=LIMIT)
            else:
                with trimmed({"command": ["sh", "-c", f"{line}; sleep 3600"]}, options):
                    while not os.path.exists(f"{place}/done") and time.monotonic() - start < LIMIT:
                        time.sleep(0.5)
            with open(output, errors="replace") as file:
                text = file.read()
            if options.log:
                shutil.copy(output, f"{options.log}.{way}")
            failed, is_whole = failed_tests(text)
            outcomes.append(failed)
            print(f"{way}: {time.monotonic() - start:.0f} s, "
                  f"{'to its end' if is_whole else 'NOT to its end: ' + text[-300:]}, failed: {sorted(failed) or 'none'}")
    return report(outcomes[1] - outcomes[0])


def report(new):
    print("passed" if not new else f"FAILED only while trimmed: {sorted(new)}")
    return not new


# MARK: redis

def redis(options):
    outcomes = []
    for way in ("untouched", "trimmed"):
        port, start = free_port(), time.monotonic()
        with tempfile.TemporaryDirectory(prefix="dormouse-suite-") as place:
            server = [os.path.join(options.source, "src", "redis-server"), "--port", str(port), "--dir", place,
                      "--enable-debug-command", "yes", "--enable-protected-configs", "yes", "--daemonize", "no"]
            suite = ["./runtest", "--host", "127.0.0.1", "--port", str(port), "--tags", "-slow", "--clients", "1",
                     *[word for name in options.names for word in ("--single", name)]]
            if way == "untouched":
                process = subprocess.Popen(server, stdout=subprocess.DEVNULL)
                said = run_suite(suite, options)
                process.terminate()
                process.wait()
            else:
                with trimmed({"command": server, "readiness": {"tcp": port}}, options):
                    said = run_suite(suite, options)
        passed = said.count("[ok]")
        failed = set(re.findall(r"\[(?:err|exception)\]: (.*)", said))
        if "All tests passed without errors" not in said and not failed:
            failed = {f"the suite ended early: {said[-300:]}"}
        outcomes.append(failed)
        print(f"{way}: {time.monotonic() - start:.0f} s, {passed} passed, failed: {sorted(failed) or 'none'}")
    return report(outcomes[1] - outcomes[0])


def run_suite(command, options):
    done = subprocess.run(command, cwd=options.source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout.decode(errors="replace"))


# MARK: PostgreSQL

def postgresql(options):
    tools = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
    return regression(tools, options) if options.source else load(tools, options)


@contextlib.contextmanager
def database(tools):
    """A new cluster: its directory, its server's command and port, and what runs a command as its user."""
    port, place = free_port(), tempfile.mkdtemp(prefix="dormouse-suite-")
    shutil.chown(place, "postgres")

    def run(*words, **others):
        return subprocess.run(["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups", *words],
                              capture_output=True, text=True, cwd=place, **{"check": True, **others})

    run(f"{tools}/initdb", "-D", f"{place}/data", "-k", "-A", "trust")
    try:
        yield place, port, [f"{tools}/postgres", "-D", f"{place}/data", "-p", str(port), "-k", place,
                            "-c", "shared_buffers=64MB"], run
    finally:
        shutil.rmtree(place, ignore_errors=True)


def wait_for(run, place, port):
    run("timeout", "60", "sh", "-c", f"until pg_isready -q -h {place} -p {port}; do sleep 0.1; done")


def regression(tools, options):
    """PostgreSQL's own tests, untouched and trimmed. The test of COPY writes files into the directory of the tests."""
    outcomes = []
    for way in ("untouched", "trimmed"):
        with database(tools) as (place, port, server, run):
            tests = shutil.copytree(options.source, f"{place}/regress")
            subprocess.run(["chown", "-R", "postgres", tests], check=True)
            words = [glob.glob(f"{tools}/../lib/pgxs/src/test/regress/pg_regress")[0], f"--bindir={tools}", f"--host={place}",
                     f"--port={port}", f"--inputdir={tests}", f"--outputdir={tests}", f"--dlpath={tests}",
                     "--max-concurrent-tests=20", "--no-locale", "--user=postgres",
                     *(options.names or [f"--schedule={tests}/parallel_schedule"])]
            start = time.monotonic()
            if way == "untouched":
                process = subprocess.Popen(["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups", *server],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                wait_for(run, place, port)
                said = run(*words, check=False, timeout=LIMIT).stdout
                process.terminate()
                process.wait()
            else:
                with trimmed({"command": server, "readiness": {"tcp": port}}, options, user="postgres"):
                    wait_for(run, place, port)
                    said = run(*words, check=False, timeout=LIMIT).stdout
            failed = set(re.findall(r"^(?:test|    ) +(\S+) +\.\.\. FAILED", said, re.M))
            if options.log:
                shutil.copytree(tests, f"{options.log}.{way}", dirs_exist_ok=True)
        passed = len(re.findall(r"\.\.\. ok", said))
        if not passed:
            failed = {f"the suite ended early: {said[-300:]}"}
        outcomes.append(failed)
        print(f"{way}: {time.monotonic() - start:.0f} s, {passed} passed, failed: {sorted(failed) or 'none'}")
    return report(outcomes[1] - outcomes[0])


def load(tools, options):
    start = time.monotonic()
    try:
        with database(tools) as (place, port, server, run):
            at = ["-h", place, "-p", str(port)]
            with trimmed({"command": server, "readiness": {"tcp": port}}, options, user="postgres"):
                wait_for(run, place, port)
                run("pgbench", *at, "-i", "-s", "5", "postgres")
                said = run("pgbench", *at, "-c", "4", "-T", f"{options.seconds:g}", "postgres").stdout
                sums = [run("psql", *at, "-Atqc", f"select sum({column}) from {table}", "postgres").stdout.strip()
                        for column, table in (("abalance", "pgbench_accounts"), ("bbalance", "pgbench_branches"),
                                              ("tbalance", "pgbench_tellers"), ("delta", "pgbench_history"))]
                run(f"{tools}/pg_amcheck", *at, "--install-missing", "--heapallindexed", "postgres")
            run(f"{tools}/pg_checksums", "-D", f"{place}/data", "--check")
    except subprocess.CalledProcessError as error:
        return report({f"{error}: {error.stderr}"})
    transactions = next(line for line in said.splitlines() if "actually processed" in line)
    print(f"{time.monotonic() - start:.0f} s, {transactions}, sums {sums}")
    return report(set() if len(set(sums)) == 1 else {f"sums: {sums}"})


# MARK: the program

def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="DORMOUSE=FILE in the environment names the executable.")
    parser.add_argument("suite", choices=("cpython", "redis", "postgresql"))
    parser.add_argument("names", nargs="*", help="parts of the suite, by its own names")
    parser.add_argument("--every", type=float, default=3, help="seconds between two trims (3)")
    parser.add_argument("--kill", type=float, help="seconds between two kills of the daemon (none)")
    parser.add_argument("--mechanism", choices=("auto", "userfaultfd", "swap"), default="userfaultfd")
    parser.add_argument("--source", metavar="DIRECTORY", help="of redis, built; or of PostgreSQL's regression tests")
    parser.add_argument("--seconds", type=float, default=60, help="of pgbench (60)")
    parser.add_argument("--log", metavar="FILE", help="where a copy of the daemon's log is kept")
    options = parser.parse_intermixed_args()
    if options.suite == "redis" and not options.source:
        parser.error("redis takes --source")
    return options


begun = time.monotonic()
options = arguments()
print(machine())
sys.exit(0 if globals()[options.suite](options) else 1)
