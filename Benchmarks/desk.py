#!/usr/bin/env python3
"""Memory of a desk before and after: agents, MCP servers, language servers and Jupyter kernels, asleep when idle.

    [DORMOUSE=PROGRAM] python3 Benchmarks/desk.py --cache DIRECTORY [--wrap-options '--idle-after 2s']

The same programs run twice: plainly, and each behind `dormouse wrap`, as `dormouse integrate` writes it. Measures
their memory, puts a sample of them to sleep again and again for the time to answer, and checks that nothing is
lost. See README.md here.
"""
import argparse
import collections
import datetime
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time

from bench import BINARY, machine, proportional, tree
from desk_cache import Cache


def parsed():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--cache", required=True, help="a directory for the programs, made at the first run")
    options.add_argument("--wrap-options", default="", help="for `dormouse wrap`; none: its own times, 5 + 5 minutes")
    options.add_argument("--rest", type=float, default=120, help="seconds of rest before the plain desk's measurement")
    options.add_argument("--agent-megabytes", type=int, default=300)
    options.add_argument("--kernel-megabytes", type=int, default=300)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--counts", default="8,20,5", help="agents, MCP servers, kernels; language servers: 5")
    options.add_argument("--output", help="write the numbers there (JSON)")
    return options.parse_args()


class Desk:
    """All programs, started and used."""

    def __init__(self, cache, options, is_wrapped):
        from jupyter import Server  # needs a package of the cache
        self.cache, self.options, self.is_wrapped = cache, options, is_wrapped
        self.server = Server()
        self.words = [*shlex.split(options.wrap_options), "--log", self.server.log]
        self.prefix = [BINARY, "wrap", *self.words, "--"] if is_wrapped else []
        self.environment = dict(self.server.environment, HOME=self.server.at("home"),
                                PATH=os.path.dirname(cache.python) + ":" + os.environ["PATH"])
        self.programs = []
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        import desk_programs as known
        from terminals import PROGRAM
        agents, tools, kernels = map(int, self.options.counts.split(","))
        repository = known.repository(self.server.at("repository"))
        script = self.server.at("agent.js")
        with open(script, "w") as file:
            file.write(PROGRAM)
        inner = [[self.cache.at("main", "bin", "mcp-server-git"), "-r", repository], self.cache.playwright()]
        commands = self.configured(tools - agents, known)
        for name, (command, environment) in commands["cursor"].items():
            self.add(known.ToolServer(name, command, repository, dict(self.environment, **environment)))
        for name, command in commands["helix"].items():
            self.add(known.LanguageServer(name, command, self.server.at(f"project-{name}"), self.environment))
        for number in range(kernels):
            self.add(known.Notebook(f"kernel-{number}", self.server, number, self.options.kernel_megabytes,
                                    self.is_wrapped))
        for number in range(agents):
            command = ["node", script, str(self.options.agent_megabytes), *inner[number % 2]]
            self.add(known.Agent(f"agent-{number}", self.prefix + command, self.environment))

    def add(self, program):
        self.programs.append(program)
        program.use()
        print(f"{program.name} is in use", file=sys.stderr, flush=True)

    def configured(self, count, known):
        """The commands in configuration files of hosts, which `dormouse integrate` changes for the wrapped desk."""
        home = self.environment["HOME"]
        servers = {}
        for number in range(count):
            kind = ("fetch", "time", "sqlite")[number % 3]
            name = f"{kind}-{number // 3}"
            data = ["--db-path", known.database(self.server.at(f"{name}.db"))] if kind == "sqlite" else []
            servers[name] = {"command": self.cache.at("sqlite" if data else "main", "bin", f"mcp-server-{kind}"),
                             "args": data, "env": {"DESK": name}}
        os.makedirs(f"{home}/.cursor")
        with open(f"{home}/.cursor/mcp.json", "w") as file:
            json.dump({"mcpServers": servers}, file, indent=2)
        languages = {"clangd": ["clangd", "--log=error"], "sourcekit-lsp": ["sourcekit-lsp"],
                     "pylsp": [self.cache.at("main", "bin", "pylsp")],
                     "basedpyright": [self.cache.at("main", "bin", "basedpyright-langserver"), "--stdio"],
                     "tsserver": ["node", self.cache.tsserver, "--disableAutomaticTypingAcquisition"]}
        os.makedirs(f"{home}/.config/helix")
        with open(f"{home}/.config/helix/languages.toml", "w") as file:
            for name, command in languages.items():
                file.write(f"[language-server.{name}]\ncommand = {json.dumps(command[0])}\n"
                           f"args = {json.dumps(command[1:])}\n")
        if self.is_wrapped:
            for words in (["cursor"], ["helix"], ["jupyter", "--server", "plain"]):
                subprocess.run([BINARY, "integrate", *words, "--", *self.words], check=True, cwd=home,
                               env=self.environment, stdout=subprocess.DEVNULL)
        return {"cursor": self.read_cursor(home), "helix": self.read_helix(home)}

    def read_cursor(self, home):
        with open(f"{home}/.cursor/mcp.json") as file:
            entries = json.load(file)["mcpServers"]
        return {name: ([entry["command"], *entry["args"]], entry["env"]) for name, entry in entries.items()}

    def read_helix(self, home):
        import tomllib
        with open(f"{home}/.config/helix/languages.toml", "rb") as file:
            entries = tomllib.load(file)["language-server"]
        return {name: [entry["command"], *entry["args"]] for name, entry in entries.items()}

    def memory(self):
        """Megabytes (PSS): of the programs of each kind, of that pages of files, and of Dormouse's own processes."""
        from desk_programs import AGENTS, TOOLS
        sums = {name: collections.Counter() for name in ("programs", "files", "own")}
        for program in self.programs:
            own, rest = self.processes(program)
            for pid in own:
                sums["own"][program.kind] += proportional(pid) / 1024
            for pid in rest:
                # The children of an agent are its MCP server.
                kind = TOOLS if program.kind == AGENTS and pid != rest[0] else program.kind
                sums["programs"][kind] += proportional(pid) / 1024
                sums["files"][kind] += proportional(pid, "Pss_File") / 1024
        return sums

    def processes(self, program):
        """Dormouse's, and the program's, its first process first."""
        own, rest = [], []
        for pid in tree(program.root):
            is_own = os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(BINARY)
            (own if is_own else rest).append(pid)
        return own, rest

    def pids(self):
        return {program.name: self.processes(program)[1] for program in self.programs}

    def steps(self, program):
        return [line for line in self.server.steps() if f"-{program.root}: " in line and " → " in line]

    def sleeps(self, program):
        steps = self.steps(program)
        return bool(steps) and " → hibernated" in steps[-1]

    def wait_until_asleep(self, limit):
        """Those that don't sleep within the limit, with the last lines of their wrapper."""
        end = time.monotonic() + limit
        while awake := [each for each in self.programs if not self.sleeps(each)]:
            if time.monotonic() > end:
                return {each.name: self.steps(each)[-3:] for each in awake}
            time.sleep(1)
        return {}

    def images(self):
        """Bytes on disk of each kind. An agent's image has its MCP server's memory as well."""
        place, sums = os.path.join(self.environment["XDG_STATE_HOME"], "dormouse", "wrap"), collections.Counter()
        for name in os.listdir(place):
            pid = name.rpartition("-")[2]
            kind = next((each.kind for each in self.programs if str(each.root) == pid), None)
            for top, _, files in os.walk(os.path.join(place, name, "images")):
                sums[kind] += sum(os.stat(os.path.join(top, file)).st_blocks * 512 for file in files)
        return dict(sums)

    def hibernate(self, program):
        place = os.path.join(self.environment["XDG_RUNTIME_DIR"], "dormouse", "wrap")
        name = next(file.removesuffix(".sock") for file in os.listdir(place) if file.endswith(f"-{program.root}.sock"))
        said = subprocess.run([BINARY, "hibernate", "--socket", f"{place}/{name}.sock", name],
                              capture_output=True, text=True, check=False)
        if said.returncode:
            raise RuntimeError(f"{program.name}: {said.stdout}{said.stderr}")

    def close(self):
        for program in self.programs:
            try:
                program.close()
            except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"desk: {program.name} doesn't end: {error}", file=sys.stderr)
        self.server.close()


def answers(ask, failed):
    """Its milliseconds, in a list; none: it failed."""
    try:
        return [ask()]
    except (RuntimeError, OSError) as error:
        failed.append(str(error))
        return []


def times(desk, rounds, failed):
    """Milliseconds to the answer, awake and asleep in turns, of a sample of each kind."""
    from desk_programs import AGENTS, KERNELS
    rows = collections.defaultdict(lambda: {"awake": [], "asleep": []})
    taken = collections.Counter()
    for program in desk.programs:
        sort = re.sub(r"-\d+$", "", program.name)
        taken[sort] += 1
        if taken[sort] > 2 or program.kind not in (AGENTS, KERNELS) and program.name.endswith("-1"):
            continue
        asks = {program.kind: program.ask}
        if program.kind == AGENTS:
            asks["an agent's MCP server"] = program.ask_tools
        for kind, ask in asks.items():
            for _ in range(rounds):
                answers(ask, failed)  # The first one after a sleep fetches more.
                rows[kind, sort]["awake"] += answers(ask, failed)
                if program.kind == AGENTS:
                    program.terminal.drain()
                answers(lambda: desk.hibernate(program), failed)
                rows[kind, sort]["asleep"] += answers(ask, failed)
    return rows


def run_plain(cache, options):
    desk = Desk(cache, options, False)
    try:
        time.sleep(options.rest)
        counts = collections.Counter(program.kind for program in desk.programs)
        memory, changed = desk.memory(), [each.name for each in desk.programs if not remembers(each)]
        if changed:
            sys.exit(f"desk: {changed} answer otherwise after a while without Dormouse too")
        return memory, dict(counts)
    finally:
        desk.close()


def run_wrapped(cache, options):
    desk, found = Desk(cache, options, True), {}
    try:
        began, pids = time.monotonic(), desk.pids()
        found["wrapped, awake"] = desk.memory()
        found["awake after the limit"] = desk.wait_until_asleep(20 * 60)
        found["seconds until all slept"] = round(time.monotonic() - began)
        found["after"], found["images"] = desk.memory(), desk.images()
        print(f"asleep after {found['seconds until all slept']} s; awake: {found['awake after the limit']}", flush=True)
        # Each wakes once after its long sleep, and has to know all.
        found["failed"] = []
        found["first"] = [{"kind": each.kind, "program": each.name, "asleep": answers(each.ask, found["failed"])}
                          for each in desk.programs]
        found["lost"] = [each.name for each in desk.programs if not remembers(each)]
        found["times"] = [{"kind": kind, "program": sort, **row} for (kind, sort), row in
                          times(desk, options.rounds, found["failed"]).items()]
        found["lost later"] = [each.name for each in desk.programs if not remembers(each)]
        # Some start and end helpers as they like (pylsp does); the program itself has to be the same.
        now = desk.pids()
        found["other processes"] = [name for name, before in pids.items() if now[name][:1] != before[:1]]
    finally:
        desk.close()
    return found


def remembers(program):
    try:
        return program.remembers()
    except (RuntimeError, OSError) as error:
        print(f"{program.name}: {error}", flush=True)
        return False


def median(rows, kind, way):
    values = [value for row in rows if row["kind"] == kind for value in row[way]]
    return f"{statistics.median(values):.0f} ({min(values):.0f}–{max(values):.0f})" if values else "–"


def first(result):
    """The answers after the long sleep, of programs that slept."""
    return [row for row in result["first"] if row["program"] not in result["awake after the limit"]]


def table(result):
    """Markdown."""
    kinds, before, after = result["counts"], result["before"], result["after"]
    print("| | programs | before, MB | after, MB | of it files' pages | of it Dormouse | on disk, MB "
          "| answer awake, ms | asleep, ms | first after the long sleep, ms |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    sums = [0] * 6
    for kind, count in kinds.items():
        own = after["own"].get(kind, 0)
        numbers = [count, before["programs"][kind], after["programs"][kind] + own, after["files"][kind], own,
                   result["images"].get(kind, 0)]
        sums = [one + other for one, other in zip(sums, numbers)]
        print(f"| {kind} | " + " | ".join(f"{number:.0f}" for number in numbers)
              + f" | {median(result['times'], kind, 'awake')} | {median(result['times'], kind, 'asleep')} "
              f"| {median(first(result), kind, 'asleep')} |")
    print("| all | " + " | ".join(f"{number:.0f}" for number in sums) + " | | | |")
    print("\n| request | awake, ms | asleep, ms |\n|---|---:|---:|")
    for row in result["times"]:
        print(f"| {row['kind']}: {row['program']} | {median([row], row['kind'], 'awake')} "
              f"| {median([row], row['kind'], 'asleep')} |")


def main():
    options = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("desk: ended by SIGTERM"))
    cache = Cache(options.cache)
    cache.fill()
    if os.path.realpath(sys.prefix) != cache.at("main"):
        os.execv(cache.python, [cache.python, *sys.argv])
    load = [os.getloadavg()[0]]
    before, counts = run_plain(cache, options)
    found = run_wrapped(cache, options)
    load.append(os.getloadavg()[0])
    counts["MCP servers"] += counts["agent sessions"]
    result = {
        "date": datetime.date.today().isoformat(), "machine": machine(), "load": load,
        "versions": cache.versions(), "wrap options": options.wrap_options, "counts": counts,
        "before": before, "wrapped, awake": found.pop("wrapped, awake"),
        "after": found.pop("after"),
        "images": {kind: size / (1 << 20) for kind, size in found.pop("images").items()}, **found}
    if options.output:
        with open(options.output, "w") as file:
            json.dump(result, file, indent=1, ensure_ascii=False)
    print(f"{result['machine']}; load at the beginning {load[0]:.1f}\n{result['versions']}\n")
    table(result)
    bad = {name: result[name] for name in ("awake after the limit", "failed", "lost", "lost later", "other processes")
           if result[name]}
    print(f"\nslept {result['seconds until all slept']} s after the last use; nothing lost: {not bad} {bad or ''}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
