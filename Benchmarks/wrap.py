#!/usr/bin/env python3
"""How does a language server behind `dormouse wrap` behave for an editor?

For each server that is installed (clangd, sourcekit-lsp, pylsp): a host that speaks LSP over pipes
starts it, opens a file of a project, and asks for completions until they are there: that is a cold
start. The same through `dormouse wrap`; then, round by round, the server is left alone until it is
hibernated, and asked again. The answers must be the same as before it slept.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from bench import BINARY, figures, machine, tree


class Host:
    """The part of an editor that a completion needs."""

    def __init__(self, command, root, environment):
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=root, env=environment)
        self.root = root
        self.count = 0
        self.answers = {}
        self.news = threading.Condition()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            length = None
            while line := self.process.stdout.readline().strip():
                name, value = line.split(b":", 1)
                if name.lower() == b"content-length":
                    length = int(value)
            if length is None:
                with self.news:
                    self.answers[None] = True
                    self.news.notify_all()
                return
            message = json.loads(self.process.stdout.read(length))
            if "method" in message and "id" in message:
                # workspace/configuration needs a list as its answer, other requests accept null.
                wanted = message.get("params", {}).get("items") if message["method"] == \
                    "workspace/configuration" else None
                self.write({"jsonrpc": "2.0", "id": message["id"],
                            "result": [None] * len(wanted) if wanted else None})
            elif "id" in message:
                with self.news:
                    self.answers[message["id"]] = message
                    self.news.notify_all()
            else:
                self.notice(message)

    def notice(self, message):
        """A notification from the server; completions need none."""

    def write(self, message):
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def notify(self, method, params):
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method, params, limit=120):
        """The result, and the milliseconds until it arrived."""
        self.count += 1
        number, start = self.count, time.monotonic()
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        with self.news:
            done = self.news.wait_for(
                lambda: number in self.answers or None in self.answers, limit)
        if not done or number not in self.answers:
            raise RuntimeError(f"no answer to {method} within {limit} s" if not done else
                               f"it ended before it answered {method}")
        passed = (time.monotonic() - start) * 1000
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"], passed

    def open(self, path, language):
        uri = "file://" + self.root
        self.ask("initialize", {
            "processId": os.getpid(), "rootUri": uri,
            "workspaceFolders": [{"uri": uri, "name": "bench"}],
            "capabilities": {"textDocument": {"completion": {}}, "workspace": {}}})
        self.notify("initialized", {})
        with open(os.path.join(self.root, path)) as file:
            text = file.read()
        self.uri = f"{uri}/{path}"
        self.notify("textDocument/didOpen", {"textDocument": {
            "uri": self.uri, "languageId": language, "version": 1, "text": text}})

    def complete(self, line, column):
        """The labels, sorted, and milliseconds."""
        result, passed = self.ask("textDocument/completion", {
            "textDocument": {"uri": self.uri},
            "position": {"line": line, "character": column}})
        items = result["items"] if isinstance(result, dict) else result or []
        return sorted(item["label"].strip() for item in items), passed

    def complete_first(self, line, column, wanted):
        """Asks until the completion has the label; milliseconds since the server's start."""
        while True:
            labels, _ = self.complete(line, column)
            if any(wanted in label for label in labels):
                return labels, (time.monotonic() - self.began) * 1000
            if time.monotonic() - self.began > 120:
                raise RuntimeError(f"never completed to {wanted}: {labels[:5]}")
            time.sleep(0.02)

    def settle(self, line, column):
        """Asks until the answers no longer change: the server continues to learn for a while."""
        same, last = 0, None
        while same < 3:
            labels, _ = self.complete(line, column)
            same = same + 1 if labels == last else 0
            last = labels
            time.sleep(0.2)

    def close(self):
        try:
            self.ask("shutdown", None, 10)
            self.notify("exit", None)
            return self.process.wait(10)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            return self.process.wait()


def cpp_project(root):
    headers = ["algorithm", "functional", "map", "memory", "regex", "string", "unordered_map",
               "vector"]
    with open(f"{root}/shapes.hpp", "w") as file:
        file.write("#pragma once\n" + "".join(f"#include <{name}>\n" for name in headers))
        for number in range(200):
            file.write(
                f"struct Shape{number} {{\n  std::map<std::string, std::vector<int>> parts;\n"
                f"  std::unordered_map<int, std::string> names;\n"
                f"  int area_{number}() const {{ return (int)parts.size() * {number}; }}\n}};\n")
    lines = ['#include "shapes.hpp"', "int main() {", "  std::vector<Shape7> shapes;",
             "  std::map<std::string, int> counts;", "  shapes.push_back({});",
             "  return shapes.", "}"]
    with open(f"{root}/main.cpp", "w") as file:
        file.write("\n".join(lines) + "\n")
    with open(f"{root}/compile_flags.txt", "w") as file:
        file.write("-std=c++17\n")
    # Not in the file itself: before it knows the types, clangd completes to the words in it.
    return "main.cpp", "cpp", 5, len(lines[5]), "emplace_back"


def python_project(root):
    os.makedirs(f"{root}/package")
    for number in range(20):
        with open(f"{root}/package/part{number}.py", "w") as file:
            file.write("import collections\nimport json\n\n")
            for index in range(30):
                file.write(f"class Part{number}x{index}(collections.OrderedDict):\n"
                           f"    def dump_{index}(self):\n        return json.dumps(self)\n\n")
    with open(f"{root}/package/__init__.py", "w") as file:
        file.write("".join(f"from .part{n} import *\n" for n in range(20)))
    lines = ["import package", "import collections", "part = package.Part3x4()", "part."]
    with open(f"{root}/main.py", "w") as file:
        file.write("\n".join(lines) + "\n")
    return "main.py", "python", 3, 5, "dump_4"


def swift_project(root):
    os.makedirs(f"{root}/Sources/Bench")
    with open(f"{root}/Package.swift", "w") as file:
        file.write("// swift-tools-version: 6.0\nimport PackageDescription\n"
                   'let package = Package(name: "Bench", targets: [.executableTarget(name: "Bench")])\n')
    with open(f"{root}/Sources/Bench/shapes.swift", "w") as file:
        for number in range(100):
            file.write(f"struct Shape{number} {{\n  var parts: [String: [Int]] = [:]\n"
                       f"  func area{number}() -> Int {{ parts.count * {number} }}\n}}\n")
    lines = ["let shape = Shape7()", "let numbers = [1, 2, 3]", "print(numbers.)"]
    with open(f"{root}/Sources/Bench/main.swift", "w") as file:
        file.write("\n".join(lines) + "\n")
    return "Sources/Bench/main.swift", "swift", 2, 14, "count"


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
        self.host = Host(wrapped, root, environment)

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
                cold = Host(command, root, os.environ)
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
