#!/usr/bin/env python3
"""How much longer does a hover take if the language server sleeps?

For each server (pyright, clangd, sourcekit-lsp): an editor's messages over pipes: initialize, didOpen of a real file,
the wait for its diagnostics, then hovers at several places of it. Two servers run: one plainly, one under
`dormouse wrap`, with the developer policy and short times. Each round asks both for the same hover: the plain one after
the same pause, the wrapped one awake, and the wrapped one when it hibernates. The answers must be the same.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv

from bench import BINARY, ROOT, figures, machine, tree
from rpc import Editor
from wrap import kilobytes

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")),
                     "dormouse-bench", "lsp")
TARGET = 30


class Reader(Editor):
    """Hovers, and the wait for diagnostics."""

    def notice(self, message):
        if message.get("method") == "textDocument/publishDiagnostics":
            with self.news:
                self.answers[message["params"]["uri"]] = message["params"]["diagnostics"]
                self.news.notify_all()

    def wait_for_diagnostics(self):
        with self.news:
            if not self.news.wait_for(lambda: self.uri in self.answers, 120):
                raise RuntimeError("no diagnostics within 120 s")

    def places(self, text, count):
        """Places all over the file where the server has something to say."""
        words = [(number, found.start()) for number, line in enumerate(text.split("\n"))
                 for found in re.finditer(r"[A-Za-z_]\w{3,}", line)
                 if not line.lstrip().startswith(("#", "/", "*", '"'))]
        found = []
        for index in range(count):
            for place in words[len(words) * index // count:][:40]:
                if self.hover(*place)[0]:
                    found.append(place)
                    break
        return found


def pyright():
    """basedpyright from its package, which has the JavaScript in it; node runs that."""
    if not shutil.which("node"):
        return None
    if not os.path.exists(CACHE):
        venv.create(CACHE, with_pip=True)
        subprocess.run([f"{CACHE}/bin/pip", "install", "-q", "--no-deps", "basedpyright"],
                       check=True)
    for top, _, files in os.walk(CACHE):
        if "langserver.index.js" in files:
            return ["node", os.path.join(top, "langserver.index.js"), "--stdio"]
    return None


def python_file(root):
    shutil.copy(tempfile.__file__, f"{root}/scratch.py")
    return "scratch.py", "python"


def c_file(root):
    shutil.copytree(os.path.join(ROOT, "Sources", "CLinux"), root, dirs_exist_ok=True)
    with open(f"{root}/compile_flags.txt", "w") as file:
        file.write("-D_GNU_SOURCE\n-Iinclude\n")
    return "spawn.c", "c"


def swift_file(root):
    shutil.copytree(os.path.join(ROOT, "Sources", "JSONLines"), f"{root}/Sources/JSONLines")
    with open(f"{root}/Package.swift", "w") as file:
        file.write("// swift-tools-version: 6.0\nimport PackageDescription\nlet package = Package("
                   'name: "Hover", targets: [.target(name: "JSONLines")])\n')
    return "Sources/JSONLines/JSONParser.swift", "swift"


def quick_policy(directory):
    """The developer policy, without its long waits before and after a sleep."""
    with open(os.path.join(ROOT, "Policies", "developer.yaml")) as file:
        text = file.read()
    for key, value in {"suspend_after": "100ms", "cooldown": "0s", "bonus": "0",
                       "max_idle": "100ms"}.items():
        text, count = re.subn(rf"^(\s+{key}:) \S+", rf"\1 {value}", text, flags=re.M)
        assert count == 1, key
    path = os.path.join(directory, "quick.yaml")
    with open(path, "w") as file:
        file.write(text)
    return path


class Wrapped:
    def __init__(self, command, root, scratch, options):
        self.log = os.path.join(scratch, "log")
        environment = dict(os.environ, XDG_STATE_HOME=os.path.join(scratch, "state"),
                           XDG_RUNTIME_DIR=scratch)
        self.editor = Reader(
            [options.dormouse, "wrap", "--policy", quick_policy(scratch), "--idle-after", "1s",
             "--hibernate-after", "200ms", "--log", self.log, "--"] + command, root, environment)

    def server(self):
        """Its processes, without the wrapper and the guardian."""
        found = []
        for pid in tree(self.editor.process.pid)[1:]:
            with open(f"/proc/{pid}/comm") as file:
                if file.read() != "dormouse-guard\n":
                    found.append(pid)
        return found

    def wait_for_sleep(self, limit=120):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            with open(self.log) as file:
                text = file.read()
            if "→ hibernated" in text.strip().rpartition("\n")[2]:
                return
            time.sleep(0.05)
        raise RuntimeError(f"it isn't hibernated:\n{text[-1500:]}")


def memory(pids):
    """RSS, PSS and anonymous memory in MB."""
    return [sum(kilobytes(pid, file, name) for pid in pids) * 1024 / 1e6
            for file, name in (("smaps_rollup", "Rss"), ("smaps_rollup", "Pss"),
                               ("status", "RssAnon"))]


def measure(name, command, make, options):
    scratch = tempfile.mkdtemp(prefix="dormouse-hover-")
    root = os.path.join(scratch, "project")
    os.makedirs(root)
    path, language = make(root)
    with open(os.path.join(root, path)) as file:
        text = file.read()
    plain = Reader(command, root, dict(os.environ))
    wrapped = Wrapped(command, root, scratch, options)
    editor = wrapped.editor
    times = {"plain": [], "wrapped, awake": [], "wrapped, hibernated": [], "the next one": []}
    sizes, changed = [], 0
    try:
        for each in (plain, editor):
            each.open(path, language)
            each.wait_for_diagnostics()
        places = plain.places(text, options.places)
        for each in (plain, editor):
            for place in places:
                each.hover(*place)
        # The first resumes learn which pages are needed.
        for round in range(-options.learn, options.rounds):
            place = places[round % len(places)]
            time.sleep(0.6)  # Until all of its memory is back.
            wanted, awake = editor.hover(*place)
            before = memory(wrapped.server())
            wrapped.wait_for_sleep()
            sizes.append(before + memory(wrapped.server()))
            unwrapped, plainly = plain.hover(*place)
            answer, asleep = editor.hover(*place)
            again, after = editor.hover(*places[(round + 1) % len(places)])
            changed += answer != wanted or answer != unwrapped or not again
            if round >= 0:
                for key, value in zip(times, (plainly, awake, asleep, after)):
                    times[key].append(value)
    except RuntimeError as error:
        with open(wrapped.log) as file:
            raise RuntimeError(f"{name}: {error}; log:\n{file.read()[-2000:]}") from None
    finally:
        plain.close()
        editor.close()
    shutil.rmtree(scratch, ignore_errors=True)
    report(name, text.count("\n"), places, times, sizes, changed)
    return changed


def report(name, lines, places, times, sizes, changed):
    print(f"\n{name}: a file of {lines} lines, {len(places)} places, {len(times['plain'])} rounds;"
          f" {changed} answers differ; load {os.getloadavg()[0]:.1f}")
    for key, values in times.items():
        print(f"  hover, {key + ', ms:':26} {figures(values)}")
    more = (statistics.median(times["wrapped, hibernated"])
            - statistics.median(times["plain"]))
    print(f"  hibernated − plain, ms:           {more:.1f} (target {TARGET})")
    for index, kind in enumerate(("RSS", "PSS", "anonymous")):
        awake, asleep = ([row[index + offset] for row in sizes] for offset in (0, 3))
        print(f"  {kind + ', awake → hibernated, MB:':32}  {statistics.median(awake):.1f} →"
              f" {statistics.median(asleep):.1f}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--learn", type=int, default=3, help="rounds before the first that counts")
    options.add_argument("--places", type=int, default=5)
    options.add_argument("--dormouse", default=BINARY)
    options.add_argument("--servers", nargs="+", default=["pyright", "clangd", "sourcekit-lsp"])
    options = options.parse_args()
    print(machine())
    known = {
        "pyright": (pyright, python_file),
        "clangd": (lambda: ["clangd", "--log=error", "--background-index=false"], c_file),
        "sourcekit-lsp": (lambda: ["sourcekit-lsp"], swift_file),
    }
    changed = 0
    for name in options.servers:
        command, make = known[name]
        words = command()
        found = words and shutil.which(words[0])
        if not found:
            print(f"\n{name}: not installed, left out")
            continue
        # A compiler's tools are found beside it, not beside a link to it.
        changed += measure(name, [os.path.realpath(found)] + words[1:], make, options)
    sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
