#!/usr/bin/env python3
"""Checks the fixtures by themselves, without Dormouse: `selfcheck.py [ROUNDS]`.

Each is built without warnings, started, stopped with SIGSTOP and continued with SIGCONT a few
times, and must then still be right. Run it as root and as an ordinary user."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


class Victim:
    def __init__(self, *command, **options):
        self.process = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            bufsize=1, start_new_session=True, **options)
        self.pid = self.process.pid
        self.said = {}
        while True:
            line = self.line()
            assert line, f"{command} ended with {self.process.wait()} before it was ready"
            word, value = line.split(None, 1)
            self.said[word] = value
            if word == "ready":
                break

    def line(self):
        return self.process.stdout.readline().strip()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        return self.line()

    def pids(self):
        found = [self.pid]
        for pid in found:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as f:
                    found += [int(p) for p in f.read().split()]
        return found

    def stop_and_continue(self):
        pids = self.pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            while state(pid) != "T":
                time.sleep(0.002)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(20)

    def kill(self):
        self.process.kill()
        return self.process.wait(5)


def state(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0]


def blocked(pid):
    with open(f"/proc/{pid}/syscall") as f:
        return not f.read().startswith("running")


def check(name, condition, *details):
    print("ok  " if condition else "FAIL", name, *details, flush=True)
    if not condition:
        sys.exit(1)


def build(directory):
    for source in sorted(os.listdir(HERE)):
        if source.endswith(".c"):
            subprocess.run(
                ["cc", "-std=c11", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", "-o",
                 os.path.join(directory, source[:-2]), os.path.join(HERE, source)], check=True)


def torture(path):
    first, second = (Victim(path, 24, 28, 7) for _ in range(2))
    check("torture is deterministic", first.ask("sum") == second.ask("sum") != "")
    before = first.ask("sum")
    check("torture starts without errors", first.ask("errors") == "errors 0 eintr 0")
    for _ in range(ROUNDS):
        first.stop_and_continue()
        check("torture keeps its sum", first.ask("sum") == before)
        woke = first.ask("wake")
        check("torture wakes", woke.startswith("woke 28 "), woke)
    for command in ("touch 3", "grow 2", "touch 4"):
        check(f"torture: {command}", first.ask(command) == second.ask(command))
    check("torture changed alike", before != first.ask("sum") == second.ask("sum"))
    check("torture has only EINTRs", first.ask("errors").startswith("errors 0 "),
          first.ask("errors"))
    check("torture quits", first.ask("quit") == "bye" and first.end() == 0)
    second.process.terminate()
    check("torture dies of SIGTERM", second.process.wait(5) == -signal.SIGTERM)
    killed = Victim(path, 4, 14, 1)
    killed.kill()
    for threads in (0, 14):
        third = Victim(path, 1, threads, 1)
        check(f"torture with {threads} threads", third.ask("sum") == third.ask("sum"))
        third.end()
    with open("/proc/sysvipc/sem") as f:
        keys = [int(line.split()[0]) for line in f.readlines()[1:]]
    check("no semaphores remain", not [k for k in keys if k & 0x7F000000 == 0x44000000])


def blocked_kinds(path, directory):
    word = os.path.join(directory, "futex")

    def connect(v):
        socket.create_connection(("127.0.0.1", int(v.said["port"]))).close()

    def datagram(v):
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(
            b"x", ("127.0.0.1", int(v.said["port"])))

    def byte(v):
        v.process.stdin.write("x")
        v.process.stdin.flush()

    def poke(*arguments):
        subprocess.run([path, "poke", *arguments], check=True, stdout=subprocess.DEVNULL)

    wakers = {
        "pipe": byte, "epoll": byte, "poll": byte, "select": byte, "accept": connect,
        "recvtimeo": datagram, "futex": lambda v: poke("futex", word),
        "semop": lambda v: poke("semop", v.said["semid"]),
        "sigtimedwait": lambda v: os.kill(v.pid, signal.SIGUSR1), "nanosleep": lambda v: None,
    }
    spurious = {"epoll", "semop", "sigtimedwait", "recvtimeo"}  # stopped, these give EINTR
    for kind, wake in wakers.items():
        for stops in (0, 1):
            argument = {"futex": [word], "nanosleep": ["0.3"]}.get(kind, [])
            v = Victim(path, kind, *argument)
            while not blocked(v.pid):
                time.sleep(0.002)
            if stops:
                v.stop_and_continue()
            if not (stops and kind in spurious):
                wake(v)
            got = v.line()
            want = "failed rc=-1 errno=4" if stops and kind in spurious else "ok"
            check(f"blocked {kind}, stopped {stops} times", got.startswith(f"{kind} {want}"), got)
            v.end()


def small_ones(at):
    tree = Victim(at("forktree"), 16, 3, 9)
    before = tree.ask("sum")
    for _ in range(ROUNDS):
        tree.stop_and_continue()
        check("forktree keeps its sum", tree.ask("sum") == before)
    pids = tree.ask("pids").split()[1:]
    check("forktree names its processes", sorted(map(int, pids)) == sorted(tree.pids()), *pids)
    check("forktree touches", tree.ask("touch") == "touched" and tree.ask("sum") != before)
    os.kill(int(pids[-1]), signal.SIGKILL)
    check("forktree notices a lost child", tree.ask("sum").startswith("error child"))
    check("forktree ends", tree.end() == 0)

    locked = Victim(at("mlocked"))
    with open(f"/proc/{locked.pid}/status") as f:
        check("mlocked has locked memory", "VmLck:\t    1024 kB" in f.read())
    check("mlocked answers", locked.ask("?") == locked.ask("?") != "")
    locked.end()

    filtered = Victim(at("seccomped"))
    filtered.stop_and_continue()
    with open(f"/proc/{filtered.pid}/status") as f:
        check("seccomped is filtered", "Seccomp:\t2" in f.read())
    check("seccomped echoes", filtered.ask("hello") == "hello" and filtered.end() == 0)

    spinner = Victim(at("busy"), 30)
    spinner.stop_and_continue()
    check("busy is busy", state(spinner.pid) == "R" and spinner.kill() == -signal.SIGKILL)

    counter = Victim(at("sigcont"))
    for n in range(1, 3):
        counter.stop_and_continue()
        time.sleep(0.02)
        os.kill(counter.pid, signal.SIGUSR1)
        check("sigcont counts", counter.line() == f"sigcont {n}")
    counter.kill()


def get(port, path, method="GET"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    return urllib.request.urlopen(request, timeout=20).read().decode().strip()


def server(name, *command):
    with tempfile.TemporaryDirectory() as directory:
        where = os.path.join(directory, "notify")
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(where)
        notify.settimeout(5)
        v = Victim(*command, "--megabytes", 8, "--cache-mb", 8,
                   env={**os.environ, "NOTIFY_SOCKET": where})
        if name.endswith(".py"):
            check(f"{name} notifies", notify.recv(256) == b"READY=1")
        notify.close()
    port = int(v.said["ready"])
    line = socket.create_connection(("127.0.0.1", port))
    line.settimeout(20)

    def count():
        line.sendall(b"GET /count HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while not answer.partition(b"\r\n\r\n")[2]:
            answer += line.recv(4096)
        return int(answer.partition(b"\r\n\r\n")[2])

    get(port, "/put?k=colour", "POST")
    get(port, "/put?colour=green", "POST")
    check(f"{name} keeps a value", get(port, "/get?colour") == "green")
    digest = get(port, "/digest")
    for n in range(1, ROUNDS + 1):
        v.stop_and_continue()
        check(f"{name} counts on the open connection", count() == n)
        check(f"{name} keeps its digest", get(port, "/digest") == digest)

    def anonymous():
        with open(f"/proc/{v.pid}/status") as f:
            return next(int(row.split()[1]) for row in f if row.startswith("RssAnon"))

    def fell_below(kilobytes):
        for _ in range(100):
            if anonymous() < kilobytes:
                break
            time.sleep(0.02)
        return anonymous()

    before = anonymous()
    get(port, "/grow?mb=16")
    grown = anonymous()
    get(port, "/drop")
    check(f"{name} grows", grown > before + 15000, before, grown)
    dropped = fell_below(grown - 10000)
    check(f"{name} drops", dropped < grown - 10000, dropped)
    before = anonymous()
    os.kill(v.pid, signal.SIGUSR1)
    shed = fell_below(before - 6000)
    check(f"{name} sheds its cache", shed < before - 6000, before, shed)
    check(f"{name} is right after shedding", get(port, "/digest") == digest)
    v.process.terminate()
    v.process.wait(5)


def pressure_watch():
    """systemd's protocol, once with a FIFO and once with a socket."""
    for kind in ("fifo", "socket"):
        with tempfile.TemporaryDirectory() as directory:
            where = os.path.join(directory, "watch")
            if kind == "fifo":
                os.mkfifo(where)
                us = os.open(where, os.O_RDWR)
            else:
                listener = socket.socket(socket.AF_UNIX)
                listener.bind(where)
                listener.listen()
            v = Victim("python3", os.path.join(HERE, "http_state.py"), "--cache-mb", 4,
                       env={**os.environ, "MEMORY_PRESSURE_WATCH": where,
                            "MEMORY_PRESSURE_WRITE": "c29tZSAxMA=="})
            if kind == "fifo":
                while len(os.listdir(f"/proc/{v.pid}/task")) < 2:
                    time.sleep(0.01)
                os.set_blocking(us, False)
                time.sleep(0.2)
                first = b""
                check("fifo: it doesn't fill its own fifo", v.process.poll() is None)
                send_event = lambda: os.write(us, b"\0")
            else:
                link, _ = listener.accept()
                first = link.recv(64)
                check("socket: it writes the text of MEMORY_PRESSURE_WRITE", first == b"some 10", first)
                send_event = lambda: link.send(b"\0")
            port = int(v.said["ready"])
            for n in range(1, 3):
                send_event()
                for _ in range(200):
                    if get(port, "/sheds") == str(n):
                        break
                    time.sleep(0.02)
                check(f"{kind}: an event sheds", get(port, "/sheds") == str(n))
            v.process.terminate()
            v.process.wait(5)


def tree():
    v = Victim("sh", os.path.join(HERE, "tree.sh"), 4, 2)
    before = v.ask("digest")
    check("tree.sh has a tree", len(v.pids()) >= 4, *v.pids())
    for n in range(1, ROUNDS + 1):
        v.stop_and_continue()
        check("tree.sh keeps its digest", v.ask("digest") == before != "")
    check("tree.sh touches", v.ask("touch") == "touched" and v.ask("digest") != before)
    check("tree.sh ends", v.end() == 0)


def main():
    with tempfile.TemporaryDirectory() as directory:
        build(directory)

        def at(name):
            return os.path.join(directory, name)

        torture(at("torture"))
        blocked_kinds(at("blocked"), directory)
        small_ones(at)
    server("http_state.py", "python3", os.path.join(HERE, "http_state.py"))
    if subprocess.run(["which", "node"], stdout=subprocess.DEVNULL).returncode == 0:
        server("http_state.js", "node", "--expose-gc", os.path.join(HERE, "http_state.js"))
    pressure_watch()
    tree()
    print("all fixtures are well")


main()
