#!/usr/bin/env python3
"""Programs that break when they stand still for long, while they are trimmed (docs/trim.md). Nothing may notice.

    sudo python3 Benchmarks/awake.py [--minutes 5] [--after 30s] [--every 60s] [--mechanism userfaultfd] [--user NAME]

gunicorn and puma with their default time-outs, a program whose own watchdog ends it, one that polls a server each 20 s, a
stdio server (behind `dormouse wrap`) whose host pings each 30 s and waits for 5 s, and a server of events (SSE), each with
40 MB of state. Nothing is configured but what the options name: the policies are `standard` and that of `wrap`. Each use
is counted, and each that was late, lost or wrong.
"""
import argparse
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from bench import BINARY, Daemon, as_user, free_port, machine, tree
from first_minutes import environment, http_text, resident

STATE = 'state = {number: "value %d" % number * 4 for number in range(150000)}\n'
SUM = "sum(map(len, state.values()))"

GUNICORN = STATE + f"""
def app(environ, start):
    body = b"ok" if environ["PATH_INFO"] == "/healthz" else str({SUM}).encode()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""

PUMA = """
state = (0...150000).map { |i| ["k#{i}", "value #{i}" * 4] }.to_h
run lambda { |env|
  body = env["PATH_INFO"] == "/healthz" ? "ok" : state.values.sum(&:size).to_s
  [200, { "content-length" => body.size.to_s }, [body]]
}
"""

# The main thread has to run at least each 5 s; a thread of its own ends the program otherwise.
WATCHDOG = "import os, threading, time\n" + STATE + """
beat = time.monotonic()

def watch():
    while True:
        time.sleep(0.5)
        if time.monotonic() - beat > 5:
            os._exit(70)

threading.Thread(target=watch, daemon=True).start()
while True:
    beat = time.monotonic()
    time.sleep(0.2)
"""

POLLER = "import sys, time, urllib.request\n" + STATE + """
while True:
    urllib.request.urlopen("http://127.0.0.1:%s/" % sys.argv[1], timeout=5).read()
    time.sleep(20)
"""

STDIO = "import json, sys\n" + STATE + f"""
for line in sys.stdin:
    request = json.loads(line)
    said = {SUM} if request["method"] == "sum" else {{}}
    print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": said}}), flush=True)
"""

EVENTS = "import http.server, sys, time\n" + STATE + """
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for number in range(1000000):
            self.wfile.write(b"data: %d\\n\\n" % number)
            self.wfile.flush()
            time.sleep(1)

    def log_message(self, *words):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


class Use:
    """What uses a worker, in a thread of its own: counts the uses, and what went wrong."""

    def __init__(self, run):
        self.count, self.wrong, self.over = 0, [], threading.Event()
        self.thread = threading.Thread(target=self.guarded, args=(run,), daemon=True)

    def guarded(self, run):
        try:
            run(self)
        except Exception as error:  # Whatever the user of a worker notices is the result.
            if not self.over.is_set():
                self.wrong.append(repr(error))

    def every(self, seconds, step):
        while not self.over.wait(seconds):
            step()
            self.count += 1


def health(port):
    def step():
        if http_text(port, "/healthz") != "ok":
            raise RuntimeError("another answer")
    return lambda use: use.every(10, step)


def events(port):
    """Events come each second; 5 s without one is what a client gives up after."""
    def run(use):
        with socket.create_connection(("127.0.0.1", port), 5) as line, line.makefile("rb") as stream:
            line.sendall(b"GET / HTTP/1.1\r\nHost: awake\r\n\r\n")
            for row in stream:
                if use.over.is_set():
                    return
                if row.startswith(b"data: "):
                    if int(row[6:]) != use.count:
                        raise RuntimeError(f"event {row!r} after {use.count}")
                    use.count += 1
    return run


def polled():
    """The server that the poller asks: it notices a poll that is late. Returns its port, and the use."""
    last = [None]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            moment = time.monotonic()
            if last[0] and moment - last[0] > 22:
                use.wrong.append(f"a poll after {moment - last[0]:.1f} s")
            last[0] = moment
            use.count += 1
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    use = Use(lambda _: server.serve_forever())
    return server.server_address[1], use


class Host:
    """A host of a stdio server: it pings each 30 s, and ends the connection when no answer has come after 5 s."""

    def __init__(self, command, home, trim, daemon):
        policy, permitted, words = os.path.join(home, "policy.yaml"), daemon.permitted, []
        if trim:
            with open(policy, "w") as file:
                json.dump({"extends": "standard", "name": "awake", "trim": trim}, file)
            words = ["--policy", policy]
        self.process = subprocess.Popen(
            [*(permitted.before if permitted else []), *as_user(daemon.user), BINARY, "wrap", *words,
             "--log", os.path.join(daemon.directory, "wrap.log"), "--", *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=home,
            env={**environment(daemon.directory), **(permitted.environment if permitted else {})})
        self.sum = self.ask("sum")

    def ask(self, method):
        start = time.monotonic()
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}) + "\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())["result"]
        if (passed := time.monotonic() - start) > 5:
            raise RuntimeError(f"an answer after {passed:.1f} s")
        return said

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)

    def server(self):
        return next(pid for pid in tree(self.process.pid)[1:] if open(f"/proc/{pid}/comm").read().startswith("python"))

    def use(self):
        return Use(lambda use: use.every(30, lambda: self.ask("ping")))


def workers(home, options):
    """Name: command, port for `sum` or None, and its use."""
    def write(name, text):
        with open(os.path.join(home, name), "w") as file:
            file.write(text)
        return os.path.join(home, name)

    python, found = "/usr/bin/python3", {}
    if shutil.which("gunicorn"):
        write("app.py", GUNICORN)
        port = free_port()
        found["gunicorn"] = (["gunicorn", "-w", "2", "-b", f"127.0.0.1:{port}", "--chdir", home, "app:app"], port,
                             Use(health(port)))
    if shutil.which("puma"):
        port = free_port()
        found["puma"] = (["puma", "-w", "2", "-b", f"tcp://127.0.0.1:{port}", "-e", "production", write("app.ru", PUMA)],
                         port, Use(health(port)))
    found["watchdog"] = ([python, write("watchdog.py", WATCHDOG)], None, Use(lambda use: None))
    port, use = polled()
    found["poller"] = ([python, write("poller.py", POLLER), str(port)], None, use)
    port = free_port()
    found["events"] = ([python, write("events.py", EVENTS), str(port)], None, Use(events(port)))
    return found, [python, write("stdio.py", STDIO)]


def row(name, worker, pids, before, daemon, sums, host):
    """Prints a row of the table. Returns true if nothing was noticed."""
    _, port, use = worker
    after = resident(tree(pids[0]))
    use.over.set()
    wrong = list(use.wrong)
    if gone := set(pids) - set(tree(pids[0])):
        wrong.append(f"processes have ended: {sorted(gone)}")
    if name in sums and http_text(port) != sums[name] or name == "stdio server" and host.ask("sum") != host.sum:
        wrong.append("another sum")
    report = {} if name == "stdio server" else daemon.worker(name)
    print(f"| {name} | {before:.1f} | {after:.1f} | {1 - after / before:.0%} | {use.count} | {report.get('state', 'wrapped')} "
          f"| {'; '.join(wrong) or 'nothing'} |")
    return not wrong


def until(deadline, step):
    while True:
        try:
            return step()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--after", help="as trim.after")
    parser.add_argument("--every", help="as trim.every")
    parser.add_argument("--mechanism", choices=("auto", "userfaultfd", "swap"))
    parser.add_argument("--log", metavar="DIRECTORY", help="where copies of the logs are kept")
    parser.add_argument("--user", help="the daemon and the workers are this user's; the script is root's")
    options = parser.parse_args()
    print(machine())
    home = tempfile.mkdtemp(prefix="dormouse-awake-")
    os.chmod(home, 0o755)
    found, command = workers(home, options)
    trim = {key: value for key in ("after", "every", "mechanism") if (value := getattr(options, key))}
    daemon, host = Daemon({
        "policy": "standard", **({"policy_overrides": {"trim": trim}} if trim else {}),
        "workers": {name: {"command": words, **({"readiness": {"tcp": port}} if port else {})}
                    for name, (words, port, _) in found.items()}}, user=options.user), None
    try:
        pids = {name: daemon.pid_of(name) for name in found}
        found["poller"][2].thread.start()
        before = dict.fromkeys(found, 0)
        for _ in range(30):  # They build their state; the first trim comes later.
            before = {name: max(before[name], resident(tree(pid))) for name, pid in pids.items()}
            time.sleep(0.5)
        sums = {name: until(time.monotonic() + 60, lambda: http_text(port)) for name, (_, port, _) in found.items()
                if name in ("gunicorn", "puma")}
        host = Host(command, home, trim, daemon)
        pids["stdio server"], found["stdio server"] = host.server(), (None, None, host.use())
        before["stdio server"] = resident(tree(host.server()))
        trees = {name: tree(pid) for name, pid in pids.items()}
        for name in set(found) - {"poller"}:
            found[name][2].thread.start()
        time.sleep(options.minutes * 60)
        print("\n| program | MB before | after | gone | uses | state | noticed |\n|---|---:|---:|---:|---:|---|---|")
        rows = [row(name, found[name], trees[name], before[name], daemon, sums, host) for name in found]
    finally:
        if host:
            host.close()
        try:
            if options.log:
                shutil.copytree(daemon.directory, options.log, dirs_exist_ok=True,
                                ignore=lambda _, names: set(names) - {"log", "wrap.log"})
        finally:
            daemon.close()
        shutil.rmtree(home, ignore_errors=True)
    sys.exit(0 if all(rows) else 1)


if __name__ == "__main__":
    main()
