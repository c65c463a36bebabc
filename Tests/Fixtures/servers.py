#!/usr/bin/env python3
"""Hibernates and resumes widespread servers three times, with their connections open.

  servers.py DORMOUSE              one line for each server that is installed; exit code 1 with what went wrong
  servers.py DORMOUSE activity     the same servers under a policy by activity instead: they stay awake under a
                                   constant light load, sleep without one, and answer the next request

PostgreSQL (a tree of processes, with a transaction open), nginx, memcached, and a program on the JVM.
Starts a daemon of its own, in a temporary directory."""
import glob
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Examples", "demo"))
from ports import free_port  # noqa: E402

JAVA = """
import com.sun.net.httpserver.*; import java.net.*; import java.util.*;
public class State {
  static int visits = 0; static Map<String, byte[]> state = new HashMap<>();
  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < 20000; i++) state.put("k" + i, ("value " + i).repeat(20).getBytes());
    HttpServer server = HttpServer.create(
        new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
    server.createContext("/", exchange -> {
      long sum = 0;
      for (var entry : state.entrySet()) sum += Arrays.hashCode(entry.getValue());
      byte[] body = (++visits + " " + sum).getBytes();
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.start();
  }
}
"""


class Web:
    """An answer is `visits rest`, or without a number; the visits must continue to count."""

    def __init__(self, port, counts):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.connection.connect()
        self.socket, self.counts, self.visits = self.connection.sock, counts, 0
        self.first = self.answer()

    def answer(self):
        self.connection.request("GET", "/")
        text = self.connection.getresponse().read().decode()
        assert self.connection.sock is self.socket, "the connection was lost"
        if not self.counts:
            return text
        visits, rest = text.split()
        self.visits += 1
        assert int(visits) == self.visits, f"visit {visits}, not {self.visits}"
        return rest

    def check(self):
        assert self.answer() == self.first, "another answer than before"


class Memcached:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.sendall(b"set key 0 0 5\r\nhello\r\n")
        assert self.socket.recv(100) == b"STORED\r\n"

    def check(self):
        self.socket.sendall(b"get key\r\n")
        assert self.socket.recv(100) == b"VALUE key 0 5\r\nhello\r\nEND\r\n"


class Postgres:
    """psql in the middle of a transaction."""

    def __init__(self, psql, port):
        self.process = subprocess.Popen(
            [psql, "-qAt", "-h", "127.0.0.1", "-p", str(port), "-U", "tester", "postgres"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.process.stdin.write("begin; create temp table t as select generate_series(1,50000) i;\n")
        self.check()

    def check(self):
        self.process.stdin.write("select count(*), sum(i) from t;\n")
        assert self.process.stdout.readline().strip() == "50000|1250025000"


def as_somebody(command, directory):
    """PostgreSQL and memcached refuse to be root."""
    if os.geteuid() != 0:
        return command
    os.chown(directory, 65534, 65534)
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *command]


def cast(directory):
    """Name, command, port and client of each installed server."""
    binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    if binaries and shutil.which("psql"):
        data, port = os.path.join(directory, "postgres"), free_port()
        os.mkdir(data)
        initdb = os.path.join(os.path.dirname(binaries[-1]), "initdb")
        subprocess.run(as_somebody([initdb, "-D", data, "-A", "trust", "-U", "tester", "-N"], data),
                       check=True, stdout=subprocess.DEVNULL)
        command = [binaries[-1], "-D", data, "-p", str(port), "-k", data]
        yield "postgres", as_somebody(command, data), port, lambda p: Postgres("psql", p)
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if nginx:
        home, port = os.path.join(directory, "nginx"), free_port()
        os.makedirs(os.path.join(home, "logs"))
        with open(os.path.join(home, "nginx.conf"), "w") as file:
            file.write(f"daemon off; worker_processes 2; pid {home}/pid; error_log {home}/errors;\n"
                       "events { worker_connections 64; }\nhttp { access_log off;\n"
                       + "".join(f"{name}_temp_path {home}/{name};\n" for name in (
                           "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
                       + f"server {{ listen 127.0.0.1:{port}; location / {{ return 200 hello; }} }} }}")
        yield ("nginx", [nginx, "-c", f"{home}/nginx.conf", "-p", home], port,
               lambda p: Web(p, counts=False))
    if shutil.which("memcached"):
        port = free_port()
        command = ["memcached", "-l", "127.0.0.1", "-p", str(port), "-m", "16"]
        yield "memcached", as_somebody(command, directory), port, Memcached
    if shutil.which("javac"):
        source, port = os.path.join(directory, "State.java"), free_port()
        with open(source, "w") as file:
            file.write(JAVA)
        subprocess.run(["javac", "-d", directory, source], check=True)
        yield ("jvm", ["java", "-Xmx64m", "-cp", directory, "State", str(port)], port,
               lambda p: Web(p, counts=True))


ASLEEP = {"memory": {"budget": "4GB"}, "foreground": {"max": "unlimited"},
          "hibernate": {"max_footprint": "unlimited", "min_footprint": "0B", "after": "never"}}
ACTIVE = {"memory": {"budget": "4GB"}, "foreground": {"mode": "activity", "max": "unlimited",
                                                      "idle_after": "2s"},
          "background": {"suspend_after": "1s", "shed_deadline": "500ms"},
          "hibernate": {"after": "never"}}


def sleep_thrice(players, verb):
    for name, _, port, client in players:
        verb("start", name)
        one, said = client(port), ""
        for _ in range(3):
            said = verb("hibernate", name)
            verb("wake", name)
            one.check()
        print(said, flush=True)


def by_activity(players, verb):
    def states():
        return {w["name"]: w["state"] for w in json.loads(verb("ps", "--json"))["workers"]}

    clients = {}
    for name, _, port, client in players:
        verb("start", name)
        clients[name] = client(port)
    # Three times as long as it takes to fall asleep.
    end = time.monotonic() + 9
    while time.monotonic() < end:
        began = time.monotonic()
        for one in clients.values():
            one.check()
        found = states()
        # A machine that holds this up for as long as it takes to fall asleep lets them sleep.
        if time.monotonic() - began < 2:
            for name, state in found.items():
                assert state in ("foreground", "background"), f"{name} is {state} under load"
        time.sleep(0.4)
    # A connection whose last answer came within a tick of TCP's clock counts as open for 60 s.
    end = time.monotonic() + 200
    while any(state != "suspended" for state in states().values()):
        assert time.monotonic() < end, f"idle, and not asleep: {states()}"
        time.sleep(0.1)
    for name, one in clients.items():
        one.check()
        print(f"{name} sleeps when it is idle", flush=True)


def run(dormouse, directory, scene):
    active = scene == "activity"
    # A virtual machine's own housekeeping uses the processor.
    players = [one for one in cast(directory) if not active or one[0] != "jvm"]
    path = os.path.join(directory, "control.sock")
    file = os.path.join(directory, "dormouse.yaml")
    with open(file, "w") as out:
        json.dump({  # JSON is YAML
            "policy": "ios-5",
            "policy_overrides": ACTIVE if active else ASLEEP,
            "workers": {name: {"command": command, "readiness": {"tcp": port}, "autostart": False}
                        for name, command, port, _ in players}}, out)

    def verb(*words):
        done = subprocess.run([dormouse, *words, "--socket", path], capture_output=True, text=True,
                              timeout=120)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()}"
        return done.stdout.strip()

    with open(os.path.join(directory, "log"), "w") as log:
        daemon = subprocess.Popen([dormouse, "daemon", "--config", file, "--socket", path,
                                   "--state-directory", os.path.join(directory, "state")], stderr=log)
    try:
        end = time.monotonic() + 60
        while not os.path.exists(path):
            assert time.monotonic() < end and daemon.poll() is None, open(log.name).read()
            time.sleep(0.01)
        (by_activity if active else sleep_thrice)(players, verb)
    finally:
        daemon.terminate()
        daemon.wait(60)


def main():
    directory = tempfile.mkdtemp(prefix="dormouse-servers-")
    os.chmod(directory, 0o755)
    try:
        run(os.path.abspath(sys.argv[1]), directory, "".join(sys.argv[2:]))
    except (AssertionError, OSError, subprocess.SubprocessError) as problem:
        sys.exit(f"servers: {type(problem).__name__}: {problem}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


main()
