"""A Jupyter server of its own, with plain and wrapped kernels, and the part of a front end that a cell needs.

Needs the packages jupyterlab, ipykernel and websocket-client (which jupyter_server needs as well).
"""
import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid

import websocket

from bench import BINARY, free_port

TOKEN = "dormouse"


class Server:
    """JupyterLab's server, with directories of its own and two kinds of kernel: `plain` and `wrapped`."""

    def __init__(self, options=(), idle="2s", hibernate="1s", prepare=None):
        self.scratch = tempfile.mkdtemp(prefix="dormouse-nb-")
        self.log = self.at("wrap.log")
        wrap = [BINARY, "wrap", "--idle-after", idle, "--hibernate-after", hibernate, "--log", self.log, "--"]
        self.define("plain", [])
        self.define("wrapped", wrap)
        self.define("wrapped-message", wrap, interrupt_mode="message")
        self.environment = dict(
            os.environ, JUPYTER_PATH=self.at("path"), JUPYTER_DATA_DIR=self.at("data"),
            JUPYTER_RUNTIME_DIR=self.at("runtime"), JUPYTER_CONFIG_DIR=self.at("config"),
            IPYTHONDIR=self.at("ipython"), XDG_STATE_HOME=self.at("state"), XDG_RUNTIME_DIR=self.scratch)
        self.port = free_port()
        os.mkdir(self.at("work"))
        with open(self.at("server.log"), "w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
                 "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={self.port}",
                 f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={self.at('work')}", *options],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment,
                start_new_session=True, preexec_fn=prepare)
        deadline = time.monotonic() + 60
        while not self.answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                sys.exit("the server doesn't start:\n" + self.words())
            time.sleep(0.1)

    def answers(self):
        try:
            return self.ask("GET", "/api/status") is not None
        except OSError:
            return False

    def at(self, name):
        return os.path.join(self.scratch, name)

    def define(self, name, before, **more):
        place = self.at(f"path/kernels/{name}")
        os.makedirs(place)
        with open(os.path.join(place, "kernel.json"), "w") as file:
            json.dump({"argv": [*before, sys.executable, "-m", "ipykernel_launcher", "-f",
                                "{connection_file}"],
                       "display_name": name, "language": "python", **more}, file)

    def ask(self, method, path, body=None, limit=60):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {TOKEN}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=limit) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def start(self, kind):
        """A kernel of that kind, ready for a cell."""
        return Kernel(self, self.ask("POST", "/api/kernels", {"name": kind})["id"])

    def kernels(self):
        return {kernel["id"]: kernel for kernel in self.ask("GET", "/api/kernels")}

    def words(self):
        with open(self.at("server.log")) as file:
            return file.read()

    def steps(self):
        """The lines of all wrappers' log."""
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:
            return file.read().splitlines()

    def images(self):
        """Bytes on disk."""
        return sum(os.path.getsize(os.path.join(top, file))
                   for top, _, files in os.walk(self.at("state")) for file in files if ".image" in file)

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)


class Cell:
    """What a cell has sent. Times are milliseconds since it was submitted."""

    def __init__(self):
        self.text, self.error, self.results, self.kinds = "", None, [], []
        self.status = self.first = self.passed = None
        self.parts = []


class Kernel:
    """A kernel, and a front end's connection to it."""

    def __init__(self, server, id):
        self.server, self.id = server, id
        self.connect()
        self.look()

    def look(self):
        """Its pid, which a restart changes."""
        self.pid = int(self.run("import os; print(os.getpid())").text)
        self.wrapper = parent(self.pid)

    def connect(self):
        self.session = uuid.uuid4().hex
        self.line = websocket.create_connection(
            f"ws://127.0.0.1:{self.server.port}/api/kernels/{self.id}/channels"
            f"?session_id={self.session}&token={TOKEN}", timeout=60,
            sockopt=((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),))
        self.line.settimeout(None)
        self.messages = queue.Queue()
        threading.Thread(target=self.listen, args=(self.line, self.messages), daemon=True).start()

    def listen(self, line, messages):
        """Answers the server's pings as well, without which it ends the connection."""
        try:
            while True:
                text = line.recv()
                # The server writes small messages, and Nagle's algorithm keeps each back until the last
                # is acknowledged: without this line each cell would take 40 ms more.
                line.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                messages.put((time.monotonic(), json.loads(text)))
        except (OSError, ValueError, AttributeError, websocket.WebSocketException):
            messages.put((time.monotonic(), None))

    def send(self, kind, content, channel="shell"):
        name = uuid.uuid4().hex
        self.line.send(json.dumps({
            "header": {"msg_id": name, "msg_type": kind, "username": "", "session": self.session,
                       "version": "5.3", "date": ""},
            "parent_header": {}, "metadata": {}, "content": content, "buffers": [],
            "channel": channel}))
        return name

    def receive(self, deadline):
        at, message = self.messages.get(timeout=max(0.01, deadline - time.monotonic()))
        if message is None:
            raise RuntimeError("the server closed the connection")
        return at, message

    def submit(self, code):
        self.began = time.monotonic()
        return self.send("execute_request", {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": True})

    def run(self, code, limit=60, on_output=None):
        return self.finish(self.submit(code), limit, on_output)

    def finish(self, name, limit=60, on_output=None):
        """Waits for the cell's reply and for `idle`; queue.Empty: they didn't come within the limit."""
        cell, is_idle, deadline = Cell(), False, time.monotonic() + limit
        while not (cell.status and is_idle):
            at, message = self.receive(deadline)
            if message["parent_header"].get("msg_id") != name:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            cell.kinds.append(kind)
            cell.passed = (at - self.began) * 1000
            if kind == "stream":
                cell.first = cell.first or cell.passed
                cell.text += content["text"]
                cell.parts.append((cell.passed, content["text"]))
                if on_output:
                    on_output(content["text"])
            elif kind in ("display_data", "execute_result"):
                cell.results.append(content["data"])
            elif kind == "error":
                cell.error = content["ename"]
            elif kind == "execute_reply":
                cell.status = content["status"]
            elif kind == "status":
                is_idle = content["execution_state"] == "idle"
        return cell

    def answer(self, name, kind, limit=60):
        """The message of that kind that answers another one."""
        deadline = time.monotonic() + limit
        while True:
            _, message = self.receive(deadline)
            if message["header"]["msg_type"] == kind and message["parent_header"].get("msg_id") == name:
                return message

    def ask(self, verb):
        """`interrupt` or `restart`; milliseconds."""
        start = time.monotonic()
        self.server.ask("POST", f"/api/kernels/{self.id}/{verb}")
        return (time.monotonic() - start) * 1000

    def shutdown(self):
        start = time.monotonic()
        self.line.close()
        self.server.ask("DELETE", f"/api/kernels/{self.id}")
        return (time.monotonic() - start) * 1000

    def steps(self):
        """What its wrapper logged."""
        return [line for line in self.server.steps() if f"-{self.wrapper}:" in line]

    def sleeps(self):
        """It is hibernated now."""
        steps = [line for line in self.steps() if "→" in line]
        return bool(steps) and "→ hibernated" in steps[-1]

    def wait_until_asleep(self, limit=120):
        """The first time takes a minute: see "open requests" in docs/waking.md."""
        deadline = time.monotonic() + limit
        while not self.sleeps():
            if time.monotonic() > deadline:
                raise RuntimeError("it isn't hibernated:\n" + "\n".join(self.steps()[-10:]))
            time.sleep(0.05)


def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for_end(pids, limit):
    """Seconds until all have ended; nil: some haven't."""
    start = time.monotonic()
    while any(map(alive, pids)):
        if time.monotonic() - start > limit:
            return None
        time.sleep(0.01)
    return time.monotonic() - start
