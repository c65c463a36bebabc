"""Runs a daemon with python, node and redis (or with those that the arguments name) in the arm64 machine: each hibernates
and wakes twice on an open connection, also after `kill -9` of the daemon.

Prints a line for each assertion: `TEXT: ok` or `FAIL: TEXT (what was found)`; the exit status is 1 after a failure."""
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

DORMOUSE = "/machine/package/usr/bin/dormouse"
PORTS = {"python": 8101, "node": 8102, "redis": 8103}
PORTS = {name: port for name, port in PORTS.items() if name in (sys.argv[1:] or PORTS)}
PLACE = pathlib.Path("/machine/state")
CONFIGURATION = """policy: ios-5
policy_overrides:
  watchdog: { launch: 10m }
  background: { suspend_after: never }
  pressure: { warning: never, urgent: never }
  hibernate: { after: never, cooldown: 0s, max_footprint: 256MB, min_footprint: 128KB, only_if_faster_than_relaunch: false }
workers:
"""
SETTINGS = {
    "python": 'command: [python3, /machine/server.py, "8101"], readiness: { tcp: 8101 }',
    "node": 'command: [node, /machine/server.mjs, "8102"], readiness: { tcp: 8102 }',
    "redis": 'command: [redis-server, --port, "8103", --save, "", --bind, 127.0.0.1], directory: /tmp, '
             'readiness: { tcp: 8103 }',
}
failures = 0


def check(text, holds, found=""):
    global failures
    failures += not holds
    print(f"{text}: ok" if holds else f"FAIL: {text} ({found})", flush=True)


def eventually(test, seconds):
    end = time.monotonic() + seconds
    while not (result := test()) and time.monotonic() < end:
        time.sleep(0.2)
    return result


def dormouse(*arguments):
    done = subprocess.run([DORMOUSE, *arguments, "--socket", f"{PLACE}/socket"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    return done.returncode, done.stdout.strip()


def state(name):
    try:
        workers = json.loads(dormouse("ps", "--json")[1].splitlines()[0])["workers"]
        return next(w["state"] for w in workers if w["name"] == name)
    except (ValueError, KeyError, IndexError, StopIteration):
        return None


def start():
    return subprocess.Popen([DORMOUSE, "daemon", "--config", f"{PLACE}/dormouse.yaml", "--socket", f"{PLACE}/socket"],
                            stdout=open(PLACE / "log", "a"), stderr=subprocess.STDOUT,
                            env={**os.environ, "XDG_STATE_HOME": str(PLACE), "LD_LIBRARY_PATH": ""})


class Clients:
    """One connection to each, open all the time: each answer is the next one of the same process."""

    def __init__(self):
        self.http = {n: http.client.HTTPConnection("127.0.0.1", PORTS[n], timeout=120) for n in PORTS if n != "redis"}
        if "redis" in PORTS:
            self.redis = socket.create_connection(("127.0.0.1", PORTS["redis"]), 120)
        self.seen = {}

    def ask(self, name):
        """None, or what is wrong."""
        try:
            if name == "redis":
                self.redis.sendall(b"INCR count\r\n")
                process, count, word = "", int(self.redis.recv(100)[1:]), "intact"
            else:
                self.http[name].request("GET", "/")
                process, count, word = self.http[name].getresponse().read().decode().split()
                count = int(count)
        except (OSError, ValueError, http.client.HTTPException) as error:
            return repr(error)
        before, self.seen[name] = self.seen.get(name), (process, count)
        if word != "intact" or before and (process, count) != (before[0], before[1] + 1):
            return f"{process} {count} {word} after {before}"
        return None


def turn(clients, names, what):
    for name in names:
        code, text = dormouse("hibernate", name)
        check(f"{name} hibernates, {what}", code == 0 and state(name) == "hibernated", text)
        print("  " + text.replace("\n", "\n  "))


def answers(clients, names, what):
    for name in names:
        wrong = clients.ask(name)
        check(f"{name} answers on its open connection, {what}", wrong is None, wrong)
        check(f"{name} is awake, {what}", eventually(lambda: state(name) in ("background", "foreground"), 60), state(name))


PLACE.mkdir(exist_ok=True)
(PLACE / "dormouse.yaml").write_text(CONFIGURATION + "".join(f"  {name}: {{ {SETTINGS[name]} }}\n" for name in PORTS))
print(subprocess.run([DORMOUSE, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip())
daemon = start()
names = [n for n in PORTS if eventually(lambda: state(n) in ("background", "foreground"), 300)]
check(f"{', '.join(PORTS)}: started", names == list(PORTS), f"{names}: {dormouse('ps')[1]}")
if failures:
    sys.exit((PLACE / "log").read_text()[-4000:])
code, text = dormouse("doctor")
print("  " + text.replace("\n", "\n  "))
clients = Clients()
answers(clients, names, "before the first sleep")
for number in (1, 2):
    turn(clients, names, f"sleep {number}")
    answers(clients, names, f"sleep {number}")
turn(clients, names, "before kill -9 of the daemon")
daemon.send_signal(signal.SIGKILL)
daemon.wait()
daemon = start()
check("the next daemon is there", eventually(lambda: state(names[0]) == "hibernated", 120), dormouse("ps")[1])
answers(clients, names, "after kill -9 of the daemon")
print(dormouse("ps")[1])
dormouse("shutdown")
if failures:
    print((PLACE / "log").read_text()[-4000:])
sys.exit(1 if failures else 0)
