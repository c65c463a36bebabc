"""A daemon in the arm64 machine, its workers, and connections to them that stay open.

The scripts that use it print a line for each assertion: `TEXT: ok` or `FAIL: TEXT (what was found)`; their exit status is
1 after a failure."""
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

DORMOUSE = os.environ.get("DORMOUSE", "/machine/package/usr/bin/dormouse")
PROGRAMS = pathlib.Path(os.environ.get("PROGRAMS_DIRECTORY", "/machine"))
PLACE = pathlib.Path(os.environ.get("PLACE", "/machine/state"))
PORTS = {"python": 8101, "node": 8102, "redis": 8103}
CONFIGURATION = """policy: ios-5
policy_overrides:
  watchdog: { launch: 10m }
  background: { suspend_after: never }
  pressure: { warning: never, urgent: never }
  trim: { mechanism: userfaultfd, after: never }
  hibernate: { after: never, cooldown: 0s, max_footprint: 256MB, min_footprint: 128KB, only_if_faster_than_relaunch: false }
workers:
"""
SETTINGS = {
    "python": f'command: [python3, {PROGRAMS}/server.py, "8101", "6"], readiness: {{ tcp: 8101 }}',
    "node": f'command: [node, {PROGRAMS}/server.mjs, "8102"], readiness: {{ tcp: 8102 }}',
    "redis": 'command: [redis-server, --port, "8103", --save, "", --bind, 127.0.0.1], directory: /tmp, '
             'readiness: { tcp: 8103 }',
}
failures = 0


def check(text, holds, found=""):
    global failures
    failures += not holds
    print(f"{text}: ok" if holds else f"FAIL: {text} ({found})", flush=True)
    return holds


def eventually(test, seconds):
    end = time.monotonic() + seconds
    while not (result := test()) and time.monotonic() < end:
        time.sleep(0.2)
    return result


def dormouse(*arguments):
    done = subprocess.run([DORMOUSE, *arguments, "--socket", f"{PLACE}/socket"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
    return done.returncode, done.stdout.strip()


def status(name):
    try:
        return json.loads(dormouse("status", name, "--json")[1].splitlines()[0])
    except (ValueError, IndexError):
        return {}  # There is no daemon.


def state(name):
    return status(name).get("state")


def configure(names, extra=""):
    PLACE.mkdir(parents=True, exist_ok=True)
    workers = "".join(f"  {name}: {{ {SETTINGS[name]} }}\n" for name in names)
    (PLACE / "dormouse.yaml").write_text(CONFIGURATION + workers + extra)


def start(**environment):
    return subprocess.Popen([DORMOUSE, "daemon", "--config", f"{PLACE}/dormouse.yaml", "--socket", f"{PLACE}/socket"],
                            stdout=open(PLACE / "log", "a"), stderr=subprocess.STDOUT,
                            env={**os.environ, "XDG_STATE_HOME": str(PLACE), "LD_LIBRARY_PATH": "", **environment})


def await_start(names):
    """Waits until the workers run; the script ends if they don't."""
    running = [n for n in names if eventually(lambda: state(n) in ("background", "foreground"), 300)]
    if not check(f"{', '.join(names)}: started", running == list(names), f"{running}: {dormouse('ps')[1]}"):
        sys.exit((PLACE / "log").read_text()[-4000:])


class Clients:
    """One connection to each, open all the time: each answer is the next one of the same process."""

    def __init__(self, names):
        self.http = {n: http.client.HTTPConnection("127.0.0.1", PORTS[n], timeout=300) for n in names if n != "redis"}
        if "redis" in names:
            self.redis = socket.create_connection(("127.0.0.1", PORTS["redis"]), 300)
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


def finish():
    if failures:
        print((PLACE / "log").read_text()[-4000:])
    sys.exit(1 if failures else 0)
