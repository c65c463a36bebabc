#!/usr/bin/env python3
"""What a new user's first minutes save, with nothing configured: no policy, no key. Works as any user.

    python3 Benchmarks/first_minutes.py [services] [checks] [answered] [wrap] [pings] [--minutes 6] [--every 30]

services: six real services under `dormouse up -d`, each asked for the last time at 0:00.
checks:   the same; two of them have a health check each 20 s.
answered: the same with `health_checks_while_asleep` for those two.
wrap:     20 stdio servers, each behind `dormouse wrap`.
pings:    the same; each host pings its server each 30 s.
Without a name all run, one after the other. A service that isn't installed is named and left out. At the end each
answers again, with its state.
"""
import argparse
import contextlib
import glob
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from bench import BINARY, free_port, machine, tree

CHECK_EVERY = 20
PING_EVERY = 30
STDIO_SERVERS = 20

GUNICORN = """
import itertools
state = {number: "value %d" % number * 4 for number in range(150000)}
visits = itertools.count(1)

def app(environ, start):
    body = b"ok" if environ["PATH_INFO"] == "/healthz" else ("%d %d" % (next(visits), len(state))).encode()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""

NODE = """
const http = require("http");
const state = new Map();
for (let i = 0; i < 150000; i++) state.set("k" + i, ("value " + i).repeat(4));
let visits = 0;
const serve = (request, response) => response.end(request.url == "/healthz" ? "ok" : `${++visits} ${state.size}`);
for (const port of process.argv.slice(2)) http.createServer(serve).listen(Number(port), "127.0.0.1");
"""

RUBY = """
require "socket"
state = (0...150000).map { |i| ["k#{i}", "value #{i}" * 4] }.to_h
visits = 0
server = TCPServer.new("127.0.0.1", ARGV[0].to_i)
loop do
  client = server.accept
  nil until client.gets.to_s.strip.empty?
  visits += 1
  body = "#{visits} #{state.size}"
  client.write "HTTP/1.1 200 OK\\r\\nContent-Length: #{body.bytesize}\\r\\nConnection: close\\r\\n\\r\\n#{body}"
  client.close
end
"""

STDIO = """
import json, sys
notes = {number: "note %d" % number * 4 for number in range(30000)}
calls = 0
for line in sys.stdin:
    request = json.loads(line)
    calls += 1
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"calls": calls, "notes": len(notes)}}),
          flush=True)
"""


def http_text(port, path="/"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path)
        return connection.getresponse().read().decode()


class Service:
    """One program, and how a client asks it. `ask` returns a number that grows by one with each request, or None."""

    def __init__(self, name, command, port, health=None):
        self.name, self.command, self.port, self.health = name, command, port, health

    def ask(self):
        text = http_text(self.port)
        return None if self.name == "static" else int(text.split()[0])

    def check(self):
        assert http_text(self.health, "/healthz") in ("ok", "asleep")


class Redis(Service):
    def ask(self):
        with socket.create_connection(("127.0.0.1", self.port), 60) as line:
            line.sendall(b"INCR visits\r\n")
            return int(line.recv(100)[1:])

    def fill(self):
        with socket.create_connection(("127.0.0.1", self.port), 60) as line:
            line.sendall(b"DEBUG POPULATE 200000 key 100\r\n")
            line.recv(100)


class Postgres(Service):
    def ask(self):
        said = subprocess.run(
            ["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "tester", "-Atqc",
             "create table if not exists t(i int); insert into t values (1); select count(*) from t", "postgres"],
            capture_output=True, text=True, timeout=60, check=True)
        return int(said.stdout.split()[-1])


def services(home):
    """Those that are installed, and the names of the others."""
    found, missing = [], []

    def write(name, text):
        with open(os.path.join(home, name), "w") as file:
            file.write(text)
        return name

    def add(kind, name, program, arguments, health=False):
        path = shutil.which(program)
        if not path:
            return missing.append(f"{name} ({program} isn't installed)")
        port, check = free_port(), free_port() if health else None
        words = [str(word).format(port=port, check=check) for word in arguments]
        found.append(kind(name, [path, *words], port, check))

    add(Redis, "redis", "redis-server",
        ["--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--enable-debug-command", "yes"])
    write("shop.py", GUNICORN)
    add(Service, "gunicorn", "gunicorn",
        ["-w", "1", "-b", "127.0.0.1:{port}", "-b", "127.0.0.1:{check}", "shop:app"], health=True)
    add(Service, "node", "node", [write("shop.js", NODE), "{port}", "{check}"], health=True)
    add(Service, "ruby", "ruby", [write("shop.rb", RUBY), "{port}"])
    os.mkdir(os.path.join(home, "pages"))
    write("pages/index.html", "hello\n")
    add(Service, "static", "python3",
        ["-m", "http.server", "{port}", "--bind", "127.0.0.1", "--directory", "pages"])
    postgres(home, found, missing)
    return found, missing


def postgres(home, found, missing):
    binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    if not binaries or not shutil.which("psql"):
        return missing.append("postgres (it isn't installed)")
    if os.geteuid() == 0:
        return missing.append("postgres (it refuses to be root)")
    data, port = os.path.join(home, "data"), free_port()
    subprocess.run([os.path.join(os.path.dirname(binaries[-1]), "initdb"), "-D", data, "-A", "trust", "-U", "tester",
                    "-N"], check=True, stdout=subprocess.DEVNULL)
    found.append(Postgres("postgres", [binaries[-1], "-D", data, "-p", str(port), "-k", data], port))


def resident(pids):
    """MB of memory of their own in RAM, shared pages by their share: what a sleep can free."""
    total = 0
    for pid in pids:
        # It may have ended; an adopted one may not be ours to read.
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    total += int(line.split()[1])
    return total / 1024


def environment(home):
    """With nothing configured."""
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("DORMOUSE", "XDG_")) or key in ("DORMOUSE_CGROUP", "DORMOUSE_LOOP_CHECK")}
    kept.update(HOME=home, XDG_RUNTIME_DIR=os.path.join(home, "run"))
    os.makedirs(os.path.join(home, "run"), mode=0o700, exist_ok=True)
    return kept


class Project:
    """A directory with a dormouse.yaml that has nothing but commands."""

    def __init__(self, home, services, answered):
        self.home, self.environment = home, environment(home)
        workers = {}
        for service in services:
            workers[service.name] = {"command": service.command}
            if answered and service.health:
                workers[service.name]["health_checks_while_asleep"] = {"port": service.health, "path": "/healthz"}
        with open(os.path.join(home, "dormouse.yaml"), "w") as file:
            json.dump({"workers": workers}, file, indent=1)  # JSON is YAML
        self.run("up", "-d")

    def run(self, *words):
        done = subprocess.run([BINARY, *words], cwd=self.home, env=self.environment, text=True, capture_output=True)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def workers(self):
        return {worker["name"]: worker for worker in json.loads(self.run("ps", "--json"))["workers"]}


def wait_until_ready(found):
    for service in found:
        end = time.monotonic() + 120
        while True:
            try:
                service.ask()
                break
            except Exception:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)


def watch(options, measure, names):
    """Measures each `every` seconds, from now on, and prints the table. The share that has left memory, by second."""
    def line(seconds, sizes, first):
        total = sum(sizes.values())
        gone = 1 - total / sum(first.values())
        if names:
            print(f"{seconds // 60}:{seconds % 60:02}  " + "".join(f"{sizes[name]:10.1f}" for name in names)
                  + f"{total:10.1f}{gone:8.0%}", flush=True)
        else:
            print(f"{seconds // 60}:{seconds % 60:02}  {total:10.1f}{gone:8.0%}", flush=True)
        return gone

    print("time  " + "".join(f"{name:>10}" for name in names) + f"{'all, MB':>10}{'gone':>8}")
    start, first = time.monotonic(), measure()
    gone = {0: line(0, first, first)}
    for seconds in range(options.every, int(options.minutes * 60) + 1, options.every):
        time.sleep(max(0, start + seconds - time.monotonic()))
        gone[seconds] = line(seconds, measure(), first)
    visible = next((second for second, share in gone.items() if share >= 0.05), None)
    print(f"first visible saving: {'none' if visible is None else f'within {visible} s'}")
    return gone


def checker(found, stop):
    while not stop.wait(CHECK_EVERY):
        for service in found:
            if service.health:
                # A check that fails is what a checker has to survive; the last requests below count.
                with contextlib.suppress(OSError, AssertionError, http.client.HTTPException):
                    service.check()


def answer_again(things):
    times, wrong = [], []
    for name, ask, expected in things:
        begun = time.monotonic()
        got = ask()
        times.append(f"{name} {(time.monotonic() - begun) * 1000:.0f}")
        if got != expected:
            wrong.append(f"{name}: {got}, not {expected}")
    print(f"first answers, ms: {', '.join(times)}")
    print(f"state lost: {', '.join(wrong) or 'none'}\n", flush=True)
    return not wrong


def of_services(options, checks, answered):
    with tempfile.TemporaryDirectory(prefix="first-minutes-") as home:
        found, missing = services(home)
        kind = " with two health checks each 20 s" if checks else ""
        print(f"{len(found)} services{kind}{', answered while asleep' if answered else ''}; no policy named"
              + "".join(f"; without {name}" for name in missing), flush=True)
        project, stop = Project(home, found, answered), threading.Event()
        try:
            wait_until_ready(found)
            for service in found:
                if isinstance(service, Redis):
                    service.fill()
            time.sleep(20)
            if checks:
                threading.Thread(target=checker, args=(found, stop), daemon=True).start()
            for service in found:
                service.last = service.ask()
            trees = {name: tree(worker["pid"]) for name, worker in project.workers().items()}
            watch(options, lambda: {name: resident(pids) for name, pids in trees.items()}, list(trees))
            print(project.run("ps"), end="")
            if checks and not answered:
                print(project.run("explain", next(each.name for each in found if each.health)), end="")
            stop.set()
            return answer_again([(each.name, each.ask, each.last and each.last + 1) for each in found])
        finally:
            stop.set()
            project.run("down")


def of_wrappers(options, pings):
    with tempfile.TemporaryDirectory(prefix="first-minutes-") as home:
        script = os.path.join(home, "notes.py")
        with open(script, "w") as file:
            file.write(STDIO)
        print(f"{STDIO_SERVERS} stdio servers, each behind `dormouse wrap`{', pinged each 30 s' if pings else ''}; no option")
        words = [BINARY, "wrap", "--", "python3", script]
        hosts = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=home,
                                  env=environment(home)) for _ in range(STDIO_SERVERS)]
        calls, stop = dict.fromkeys(hosts, 0), threading.Event()

        def call(host):
            calls[host] += 1
            host.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n")
            host.stdin.flush()
            return json.loads(host.stdout.readline())["result"]["calls"]

        def ping():
            while not stop.wait(PING_EVERY):
                for host in hosts:
                    call(host)

        try:
            for host in hosts:
                call(host)
            time.sleep(10)
            for host in hosts:
                call(host)
            servers = [pid for host in hosts for pid in tree(host.pid)[1:]
                       if open(f"/proc/{pid}/comm").read() != "dormouse-guard\n"]
            pinger = threading.Thread(target=ping)
            if pings:
                pinger.start()
            watch(options, lambda: {"all": resident(servers)}, [])
            stop.set()
            if pings:
                pinger.join()
            return answer_again([(f"{place + 1}", lambda host=host: call(host), calls[host] + 1)
                                 for place, host in enumerate(hosts)])
        finally:
            stop.set()
            for host in hosts:
                host.stdin.close()
                host.wait(60)


def main():
    kinds = {"services": lambda options: of_services(options, False, False),
             "checks": lambda options: of_services(options, True, False),
             "answered": lambda options: of_services(options, True, True), "wrap": lambda options: of_wrappers(options, False),
             "pings": lambda options: of_wrappers(options, True)}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kinds", nargs="*", help=f"{', '.join(kinds)}; default: all")
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--every", type=int, default=30)
    options = parser.parse_args()
    if not os.path.exists(BINARY):
        sys.exit(f"there is no {BINARY} yet; `make build` builds it, or DORMOUSE names it")
    if unknown := set(options.kinds) - set(kinds):
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(kinds)}")
    print(machine() + "\n", flush=True)
    whole = [kinds[kind](options) for kind in options.kinds or kinds]
    sys.exit(0 if all(whole) else 1)


if __name__ == "__main__":
    main()
