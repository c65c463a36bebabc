"""Programs that keep a state, for benchmarks that compare ways of putting the same ones to sleep."""
import os
import shutil
import sys

from bench import ROOT
from talk import Redis, Web

FIXTURES = os.path.join(ROOT, "Tests", "Fixtures")


def programs(sizes):
    """Title, command with `PORT` for its port, and client class of each installed program."""
    for size in sizes:
        yield (f"python, {size} MB of state", [
            sys.executable, os.path.join(FIXTURES, "http_state.py"), "--port", "PORT",
            "--megabytes", str(size)], Web)
    if shutil.which("node"):
        yield ("node", ["node", os.path.join(FIXTURES, "http_state.js"), "--port", "PORT",
                        "--megabytes", "1"], Web)
    if shutil.which("redis-server"):
        yield ("redis", ["redis-server", "--port", "PORT", "--bind", "127.0.0.1", "--save", "",
                         "--appendonly", "no"], Redis)
