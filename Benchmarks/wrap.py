#!/usr/bin/env python3
"""How does a language server behind `dormouse wrap` behave for an editor?

For each server that is installed (clangd, sourcekit-lsp, pylsp): a host that speaks LSP over pipes
starts it, opens a file of a project, and asks for completions until they are there: that is a cold
start. The same through `dormouse wrap`; then, round by round, the server is left alone until it is
hibernated, and asked again. The answers must be the same as before it slept.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

from bench import BINARY, figures, machine, tree
from rpc import Editor
from projects import cpp_project, python_project, swift_project


def kilobytes(pid, file, *names):
    try:
        with open(f"/proc/{pid}/{file}") as lines:
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
    except OSError:
        return 0
    return sum(int(fields[name].split()[0]) for name in names if name in fields)


def anonymous(pids):
    return sum(kilobytes(pid, "status", "RssAnon") for pid in pids)


class Wrapper:
    """A host's `dormouse wrap`, observed from outside."""

    def __init__(self, command, root, scratch, idle):
        state = os.path.join(scratch, "state")
        self.log = os.path.join(scratch, "log")
        environment = dict(os.environ, XDG_STATE_HOME=state, XDG_RUNTIME_DIR=scratch)
        wrapped = [BINARY, "wrap", "--idle-after", idle, "--hibernate-after", "100ms",
                   "--log", self.log, "--"] + command
        self.host = Editor(wrapped, root, environment)

    @property
    def pid(self):
        return self.host.process.pid

    def server(self):
        """The server's processes: the wrapper's children without its guardian."""
        children = [pid for pid in tree(self.pid)[1:]]
        return [pid for pid in children if open(f"/proc/{pid}/comm").read() != "dormouse-guard\n"]

    def sleeps(self):
        """How often it has been hibernated."""
        with open(self.log) as file:
            return file.read().count("→ hibernated")

    def wait_until_hibernated(self, count, limit=60):
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            if self.sleeps() >= count:
                return
            time.sleep(0.02)
        with open(self.log) as file:
            raise RuntimeError(f"it isn't hibernated:\n{file.read()}")


def measure(name, command, make, options):
    scratch = tempfile.mkdtemp(prefix="dormouse-wrap-")
    root = os.path.join(scratch, "project")
    os.makedirs(root)
    path, language, line, column, wanted = make(root)
    times = {"cold start to first completion": [], "the same, wrapped": [], "awake": [],
             "hibernated": []}
    memory = []
    wrapper = Wrapper(command, root, scratch, options.idle)
    try:
        host = wrapper.host
        host.open(path, language)
        labels, passed = host.complete_first(line, column, wanted)
        times["the same, wrapped"].append(passed)
        host.settle(line, column)
        changed = 0
        for round in range(1, options.rounds + 1):
            labels, passed = host.complete(line, column)
            times["awake"].append(passed)
            before = anonymous(wrapper.server())
            wrapper.wait_until_hibernated(wrapper.sleeps() + 1)
            memory.append((before, anonymous(wrapper.server())))
            again, passed = host.complete(line, column)
            times["hibernated"].append(passed)
            changed += again != labels
            # Measured at the same time, so that both have the same load.
            if round <= options.cold:
                cold = Editor(command, root, os.environ)
                cold.open(path, language)
                times["cold start to first completion"].append(
                    cold.complete_first(line, column, wanted)[1])
                cold.close()
        host.complete(line, column)
        wrapper.wait_until_hibernated(wrapper.sleeps() + 1)
        images = os.path.join(scratch, "state", "dormouse", "wrap")
        image = sum(os.path.getsize(os.path.join(top, file))
                    for top, _, files in os.walk(images) for file in files if ".image" in file)
    except RuntimeError as error:
        with open(wrapper.log) as file:
            raise RuntimeError(f"{error}; its wrapper says:\n{file.read()}") from None
    finally:
        code = wrapper.host.close()
    print(f"\n{name}: {len(labels)} completions; {changed} of {options.rounds} differed after sleep;"
          f" exit code {code}")
    print("  ms to the completion")
    for way, values in times.items():
        print(f"    {way:30}  {figures(values)}")
    before, after = (sorted(column)[len(memory) // 2] for column in zip(*memory))
    print(f"  anonymous memory of its processes: {before / 1024:.1f} MB awake, {after} KB hibernated;"
          f" image {image / 1048576:.1f} MB")
    shutil.rmtree(scratch, ignore_errors=True)
    return changed


def processor_time(pids):
    """Milliseconds."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:
            ticks += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
    return ticks * 1000 // os.sysconf("SC_CLK_TCK")


def many(count):
    """The cost of the wrappers themselves, for an editor with many sleeping servers."""
    scratch = tempfile.mkdtemp(prefix="dormouse-wrap-")
    environment = dict(os.environ, XDG_STATE_HOME=scratch, XDG_RUNTIME_DIR=scratch)
    hosts = [subprocess.Popen(
        [BINARY, "wrap", "--idle-after", "2s", "--hibernate-after", "1h", "--", "cat"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment) for _ in range(count)]
    time.sleep(15)
    wrappers = [host.pid for host in hosts]
    guardians = [pid for wrapper in wrappers for pid in tree(wrapper)
                 if open(f"/proc/{pid}/comm").read() == "dormouse-guard\n"]
    sizes = {name: sum(kilobytes(pid, "smaps_rollup", name) for pid in wrappers + guardians) // count
             for name in ("Rss", "Pss", "Pss_Dirty")}
    start, seconds = processor_time(wrappers), 20
    time.sleep(seconds)
    used = processor_time(wrappers) - start
    for host in hosts:
        host.stdin.close()
    for host in hosts:
        host.wait(20)
    print(f"\n{count} wrappers around sleeping programs, each with its guardian: {sizes['Rss']} KB resident,"
          f" {sizes['Pss']} KB proportional, {sizes['Pss_Dirty']} KB of that dirty;"
          f" all together {used} ms of processor time in {seconds} s")
    shutil.rmtree(scratch, ignore_errors=True)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--cold", type=int, default=5, help="cold starts to compare with")
    options.add_argument("--wrappers", type=int, default=30, help="the number of wrappers at a time; 0: none")
    options.add_argument("--idle", default="1s", help="--idle-after")
    options.add_argument("--servers", nargs="+", default=["clangd", "sourcekit-lsp", "pylsp"])
    options = options.parse_args()
    print(machine())
    known = {
        "clangd": (["clangd", "--log=error", "--background-index=false"], cpp_project),
        "sourcekit-lsp": (["sourcekit-lsp"], swift_project),
        "pylsp": (["pylsp"], python_project),
    }
    changed = 0
    for name in options.servers:
        command, make = known[os.path.basename(name)]
        found = shutil.which(name)
        if not found:
            print(f"\n{name}: not installed, left out")
            continue
        changed += measure(os.path.basename(name), [found] + command[1:], make, options)
    if options.wrappers:
        many(options.wrappers)
    sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
