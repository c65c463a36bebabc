"""The workers: programs that most machines have, and what the demo keeps of each."""
import os
import shutil
import sys

from ports import free_port
from talk import Redis, Web

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.path.join(HERE, "..", "..", ".build", "tools")


class Worker:
    def __init__(self, name, what, command, talk=Web, **configuration):
        self.name, self.what, self.talk = name, what, talk
        self.port = free_port()
        self.command = [str(self.port) if word == "PORT" else word for word in command]
        self.configuration = {"command": self.command, "readiness": {"tcp": self.port},
                              "autostart": False, **configuration}
        self.line = self.pid = self.digest = None
        self.visits = 0
        self.launched = self.awake = self.asleep = self.image = self.resume = self.relaunch = None
        self.end = ""

    def meet(self):
        """Connects, until the demo ends, and reads all that it holds."""
        self.line = self.talk(self.port)
        self.line.fill()
        self.visits = self.line.visit()
        self.digest = self.line.digest()

    def is_left(self):
        """Its first process still runs: a daemon that ended in the orderly way leaves none."""
        try:
            with open(f"/proc/{self.pid}/cmdline", "rb") as file:
                words = file.read().decode().split("\0")
            return self.command[-1] in words or str(self.port) in " ".join(words)
        except OSError:
            return False

    def visit(self):
        """One request over the connection that has been open from the start."""
        self.visits += 1
        seen = self.line.visit()
        if seen != self.visits:
            raise AssertionError(f"{self.name} lost count: {seen}, not {self.visits}")

    def check(self):
        if self.line.digest() != self.digest:
            raise AssertionError(f"{self.name} isn't what it was: its digest changed")


def cast():
    def app(name, what, *options, **configuration):
        command = [sys.executable, os.path.join(HERE, "app.py"), name, "--port", "PORT", *options]
        return Worker(name, what, command, **configuration)

    players = [
        # Without its hibernation something is left to terminate when memory runs out.
        app("notes", "python, is never hibernated", "--megabytes", "24",
            policy={"hibernate": {"enabled": False}}),
        app("maps", "python, with a cache that it can free", "--megabytes", "1",
            "--cache-mb", "12", shed={"signal": "USR1"}),
        app("game", "python, big", "--megabytes", "40"),
    ]
    node = shutil.which("node") or shutil.which("nodejs")
    if node:
        players.append(Worker("chat", "node", [node, os.path.join(HERE, "chat.js"), "PORT"]))
    redis = shutil.which("redis-server") or shutil.which("redis-server", path=TOOLS)
    if redis:
        command = [os.path.abspath(redis), "--port", "PORT", "--bind", "127.0.0.1", "--save", "",
                   "--appendonly", "no"]
        players.append(Worker("store", "redis, 20,000 keys", command, talk=Redis))
    players.append(app("browser", "python, in the foreground", "--megabytes", "1"))
    missing = [name for name, path in (("node", node), ("redis", redis)) if not path]
    return players, missing


def tree(pid):
    """A process and its descendants."""
    found = [pid]
    for one in found:
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children") as children:
                    found += [int(child) for child in children.read().split()]
        except OSError:
            pass
    return found


def memory(pid):
    """Bytes in RAM now: anonymous (its own), and clean file pages (the kernel's to take back)."""
    anonymous = files = 0
    for one in tree(pid):
        try:
            with open(f"/proc/{one}/status") as status:
                for row in status:
                    if row.startswith("RssAnon:"):
                        anonymous += int(row.split()[1]) << 10
                    elif row.startswith("RssFile:"):
                        files += int(row.split()[1]) << 10
        except OSError:
            pass
    return anonymous, files
