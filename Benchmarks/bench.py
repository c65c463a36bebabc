"""What the benchmarks share: a daemon of their own, its verbs, and the machine's description."""
import contextlib
import json
import os
import platform
import pwd
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The demo has what these programs use as well: free ports, and the lines that talk to workers.
sys.path.insert(0, os.path.join(ROOT, "Examples", "demo"))
from ports import free_port  # noqa: E402, F401

BINARY = os.environ.get("DORMOUSE", os.path.join(ROOT, ".build", "release", "dormouse"))


def as_user(user):
    """The words before a command that root runs as another user."""
    if user is None:
        return []
    account = pwd.getpwnam(user)
    return ["setpriv", "--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--init-groups"]


class Permitted:
    """What root gives to a user: a cgroup, as systemd delegates one, and the service for userfaultfd."""

    def __init__(self, user, binary, directory):
        account = pwd.getpwnam(user)
        with open("/proc/mounts") as file:
            mounts = [row.split() for row in file]
        root = next((words[1] for words in mounts if words[2] == "cgroup2"), None)
        self.group = root and os.path.join(root, os.path.basename(directory))
        self.before, self.environment = [], {}
        if self.group:
            inner = os.path.join(self.group, "daemon")
            os.makedirs(inner)
            for place in (self.group, inner):
                for name in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
                    os.chown(os.path.join(place, name), account.pw_uid, account.pw_gid)
            self.before = ["sh", "-c", f'echo $$ >{inner}/cgroup.procs; exec "$@"', "sh"]
            self.environment["DORMOUSE_CGROUP"] = self.group
        listen = os.path.join(directory, "userfault.sock")
        self.environment["DORMOUSE_USERFAULT_SOCKET"] = listen
        self.service = subprocess.Popen([binary, "userfault-service", "--listen", listen, "--group", str(account.pw_gid)],
                                        stdin=subprocess.DEVNULL)

    def end(self):
        self.service.kill()
        self.service.wait()
        for place, _, _ in os.walk(self.group or "", topdown=False):
            with contextlib.suppress(OSError):  # A process may still be ending in it.
                os.rmdir(place)


class Daemon:
    """`user`: the one that it and its workers run as, if this is root; root permits that user all that the package can."""

    def __init__(self, configuration, environment=None, binary=None, state=None, user=None):
        self.binary, self.user = binary or BINARY, user
        if not os.path.exists(self.binary):
            sys.exit(f"there is no {self.binary} yet; `make build` builds it")
        self.directory = tempfile.mkdtemp(prefix="dormouse-bench-")
        self.path = os.path.join(self.directory, "control.sock")
        self.state = state or os.path.join(self.directory, "state")
        self.file = os.path.join(self.directory, "dormouse.yaml")
        with open(self.file, "w") as out:
            # JSON is YAML. The figures are compared with earlier ones, which the talks' policy had.
            json.dump({"policy": "ios-5", **configuration}, out)
        self.permitted = None
        if user:
            shutil.chown(self.directory, user)
            shutil.chown(self.file, user)
            self.permitted = Permitted(user, self.binary, self.directory)
        self.log = open(os.path.join(self.directory, "log"), "a")
        self.begin(environment)

    def begin(self, environment=None):
        """Starts it, also again on the same state directory; returns when it listens."""
        before = []
        if self.permitted:
            before, environment = self.permitted.before, {**(environment or os.environ), **self.permitted.environment}
        self.process = subprocess.Popen(
            [*before, *as_user(self.user), self.binary, "daemon", "--config", self.file, "--socket", self.path,
             "--state-directory", self.state],
            stdin=subprocess.DEVNULL, stderr=self.log, env=environment)
        end = time.monotonic() + 20
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with socket.socket(socket.AF_UNIX) as line:
                    line.connect(self.path)
                return
            except OSError:
                time.sleep(0.005)

    def send(self, verb, worker=None):
        line = socket.socket(socket.AF_UNIX)
        line.connect(self.path)
        line.sendall(json.dumps({"id": 1, "verb": verb, "worker": worker}).encode() + b"\n")
        return line

    def answer(self, line):
        with line, line.makefile() as stream:
            said = json.loads(stream.readline())
        if said["result"] != "done":
            raise RuntimeError(said["text"])
        return said

    def ask(self, verb, worker=None):
        return self.answer(self.send(verb, worker))

    def worker(self, name):
        return self.ask("status", name)["workers"][0]

    def pid_of(self, name):
        """The process of a worker, once it has one."""
        failure = f"{name} could not be launched: "
        while "pid" not in (worker := self.worker(name)):
            with open(self.log.name) as file:
                for row in file:
                    if failure in row:
                        raise RuntimeError(row.strip())
            time.sleep(0.02)
        return worker["pid"]

    def close(self):
        try:
            self.ask("shutdown")
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()
            if self.permitted:
                self.permitted.end()
            shutil.rmtree(self.directory, ignore_errors=True)


def tree(root):
    """Its pid, and those of its descendants."""
    found, parents = [], [root]
    while parents:
        pid = parents.pop()
        found.append(pid)
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as file:
                    parents += [int(word) for word in file.read().split()]
        except OSError:
            pass  # It has ended.
    return found


def proportional(pid, field="Pss"):
    """Kilobytes of one process: of a page that n processes share, the nth part. `Pss_File`: files' pages only."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ":"))


def processor(pid):
    """Seconds of its threads, by the scheduler's account in nanoseconds: ticks of 10 ms are too coarse for a budget of
    30 ms a minute. A thread that has ended is missing; an idle daemon ends none."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
        except FileNotFoundError:
            continue
    return total / 1e9


def machine():
    with open("/proc/cpuinfo") as file:
        rows = [row.split(":") for row in file if ":" in row]
    # arm64 names no model.
    models = [text.strip() for name, text, *_ in rows if name.strip() == "model name"]
    with open("/proc/meminfo") as file:
        total = int(file.readline().split()[1]) >> 20
    model = models[0] if models else platform.machine()
    return f"{os.cpu_count()} × {model}, {total} GB, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}"


def figures(values):
    """Median, and the range."""
    if not values:
        return "–"
    return f"{statistics.median(values):.1f} ({min(values):.1f}–{max(values):.1f})"
