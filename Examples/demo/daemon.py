"""A daemon of the demo's own, in a directory of its own, and its verbs."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time


class Refused(Exception):
    """Dormouse said no, in one sentence."""


class Daemon:
    def __init__(self, binary, policies, configuration):
        self.binary = binary
        self.directory = tempfile.mkdtemp(prefix="dormouse-demo-")
        self.socket = os.path.join(self.directory, "control.sock")
        self.log = os.path.join(self.directory, "daemon.log")
        file = os.path.join(self.directory, "dormouse.yaml")
        with open(file, "w") as out:
            json.dump({"policy": os.path.join(policies, "ios-5.yaml"), **configuration}, out,
                      indent=2)  # JSON is YAML
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [binary, "daemon", "--config", file, "--socket", self.socket,
                 "--state-directory", os.path.join(self.directory, "state")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.wait_for_socket()
        except BaseException:
            self.end()
            raise

    def wait_for_socket(self):
        end = time.monotonic() + 10
        while not os.path.exists(self.socket):
            if self.process.poll() is not None:
                raise Refused(f"the daemon didn't start: {self.last_words()}")
            if time.monotonic() > end:
                raise Refused(f"the daemon isn't there after 10 s: {self.last_words()}")
            time.sleep(0.01)

    def last_words(self):
        with open(self.log) as log:
            lines = [line.strip() for line in log if line.strip()]
        return lines[-1] if lines else "it said nothing"

    def verb(self, *words, patience=30):
        """What it answers, when it has happened."""
        try:
            done = subprocess.run(
                [self.binary, *words, "--socket", self.socket], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=patience)
        except subprocess.TimeoutExpired:
            raise Refused(f"`dormouse {' '.join(words)}` gave no answer in {patience} s") from None
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            last = said[-1] if said else f"exit code {done.returncode}"
            raise Refused(last.removeprefix("dormouse: "))
        return done.stdout.strip()

    def show(self, *words):
        """The same on our own standard output: at a terminal in its width and colours."""
        if not sys.stdout.isatty():
            return print(self.verb(*words), flush=True)
        sys.stdout.flush()
        if subprocess.run([self.binary, *words, "--socket", self.socket]).returncode != 0:
            raise Refused(f"`dormouse {' '.join(words)}` failed")

    def request(self, verb, worker):
        """The same over the control socket, without starting a client: for measuring. Returns a
        function that waits for the answer."""
        line = socket.socket(socket.AF_UNIX)
        line.connect(self.socket)
        line.sendall(json.dumps({"id": 1, "verb": verb, "worker": worker}).encode() + b"\n")

        def answer():
            with line, line.makefile() as stream:
                said = json.loads(stream.readline() or "{}")
            if said.get("result") != "done":
                raise Refused(said.get("text", f"no answer to {verb}"))
        return answer

    def status(self):
        return json.loads(self.verb("status", "--json"))["daemon"]

    def freezer(self):
        return self.status()["freezer"]["text"]

    def workers(self):
        listing = json.loads(self.verb("ps", "--json"))
        return {worker["name"]: worker for worker in listing["workers"] or []}

    def end(self):
        try:
            if self.process.poll() is None:
                self.verb("shutdown", patience=15)
                self.process.wait(10)
        except (Refused, subprocess.TimeoutExpired):
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
