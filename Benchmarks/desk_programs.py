"""The programs of desk.py: how each is started, used, asked, and what it must still know after a sleep."""
import os
import re
import sqlite3
import subprocess
import time

from bench import tree
from jupyter import parent
from notebooks import NEXT, WHOLE, fill
from projects import cpp_project, python_project, swift_project, typescript_project
from rpc import Editor, ToolHost, TypeScript
from terminals import Terminal

AGENTS, TOOLS, LANGUAGES, KERNELS = "agent sessions", "MCP servers", "language servers", "Jupyter kernels"


class Agent:
    """A stand-in: a node program in a terminal with objects, a text, and an MCP server as its child."""
    kind = AGENTS

    def __init__(self, name, command, environment):
        self.name = name
        self.terminal = Terminal(command, environment)
        self.terminal.wait("<ready>")
        self.root = self.terminal.pid
        self.text = ""

    def type(self, key):
        self.text = (self.text + key)[-60:]
        return self.terminal.press(key, f"> {self.text}\n<{key}>".replace("\n", "\r\n"))

    def use(self):
        for key in "hello":
            self.type(key)
        self.ask_tools()
        self.sum = self.read_all()
        self.terminal.drain()

    def read_all(self):
        self.terminal.press("s", "<sum ")
        return self.terminal.until(">")

    def ask(self):
        return self.type("x")

    def ask_tools(self):
        """The key, the agent's request to its MCP server, and the answer on the screen."""
        passed = self.terminal.press("m", "<tools ")
        self.count = self.terminal.until(">")
        return passed

    def remembers(self):
        before = self.count
        self.type("y")
        self.ask_tools()
        return self.count == before and self.read_all() == self.sum

    def close(self):
        self.terminal.close()


class ToolServer:
    kind = TOOLS

    def __init__(self, name, command, directory, environment):
        self.name = name
        self.host = ToolHost(command, directory, environment)
        self.root = self.host.process.pid

    def use(self):
        self.host.open()
        self.names, _ = self.host.tools()
        self.call = {"time": ("get_current_time", {"timezone": "Europe/Berlin"}),
                     "sqlite": ("append_insight", {"insight": f"kept by {self.name}"})}.get(self.name.split("-")[0])
        if self.call:
            self.host.call(self.call[0], **self.call[1])

    def ask(self):
        names, passed = self.host.tools()
        if names != self.names:
            raise RuntimeError(f"{self.name} lists other tools: {names}")
        return passed

    def remembers(self):
        """The session is still open: no second `initialize`. sqlite's memo is in its memory only."""
        if self.name.startswith("sqlite"):
            result, _ = self.host.ask("resources/read", {"uri": "memo://insights"})
            if f"kept by {self.name}" not in result["contents"][0]["text"]:
                return False
        elif self.call:
            self.host.call(self.call[0], **self.call[1])
        return self.host.tools()[0] == self.names

    def close(self):
        self.host.close()


class LanguageServer:
    kind = LANGUAGES

    def __init__(self, name, command, directory, environment):
        self.name = name
        make, kind = {"clangd": (cpp_project, Editor), "sourcekit-lsp": (swift_project, Editor),
                      "tsserver": (typescript_project, TypeScript)}.get(name, (python_project, Editor))
        os.makedirs(directory)
        self.project = make(directory)
        self.host = kind(command, directory, environment)
        self.root = self.host.process.pid

    def use(self):
        path, language, line, column, wanted = self.project
        self.host.open(path, language)
        self.host.complete_first(line, column, wanted)
        self.host.settle(line, column)
        self.place = self.word_before(path, line, column)
        self.text = self.settle()
        self.labels, _ = self.host.complete(line, column)
        if len(self.text) < 10:
            raise RuntimeError(f"{self.name}: hover has no text")

    def settle(self):
        """The hover when neither it nor the server's processes have changed for 5 s: sourcekit-lsp answers
        otherwise before it has loaded the package."""
        seen, since, end = None, 0, time.monotonic() + 90
        while seen is None or time.monotonic() - since < 5:
            if time.monotonic() > end:
                raise RuntimeError(f"{self.name}: the hover changes all the time: {seen}")
            now = self.host.hover(*self.place)[0], sorted(tree(self.root))
            if now != seen:
                seen, since = now, time.monotonic()
            time.sleep(0.3)
        return seen[0]

    def word_before(self, path, line, column):
        """Where the word that is completed after its dot was last used; in Python its type, which has a text."""
        with open(os.path.join(self.host.root, path)) as file:
            lines = file.read().splitlines()
        word = re.search(r"\w+(?=\.$)", lines[line][:column]).group()
        last = max(number for number in range(line) if re.search(rf"\b{word}\b", lines[number]))
        return last, lines[last].index("Part3x4" if path.endswith(".py") else word)

    def ask(self):
        text, passed = self.host.hover(*self.place)
        if text != self.text:
            raise RuntimeError(f"{self.name}: another text: {text}")
        return passed

    def remembers(self):
        """The opened file, and what it learned of the project."""
        _, _, line, column, _ = self.project
        return self.ask() > 0 and self.host.complete(line, column)[0] == self.labels

    def close(self):
        self.host.close()


class Notebook:
    kind = KERNELS

    def __init__(self, name, server, seed, megabytes, is_wrapped):
        self.name, self.server, self.seed, self.megabytes = name, server, seed, megabytes
        self.kernel = server.start("plain")
        self.root = parent(self.kernel.pid) if is_wrapped else self.kernel.pid
        self.cells = 0

    def use(self):
        fill(self.server, self.kernel, self.seed, self.megabytes)
        self.ask()
        self.prices = self.digest()

    def digest(self):
        return self.kernel.run(WHOLE).text.split()[0]

    def ask(self):
        """A cell that counts: lost state would begin again."""
        self.cells += 1
        cell = self.kernel.run(NEXT)
        if cell.text.split()[0] != str(self.cells):
            raise RuntimeError(f"{self.name}: cell {self.cells} says {cell.text}")
        return cell.first

    def remembers(self):
        return self.ask() > 0 and self.digest() == self.prices

    def close(self):
        self.kernel.shutdown()


def repository(directory):
    """For the git servers."""
    os.makedirs(directory)
    with open(f"{directory}/README", "w") as file:
        file.write("A repository.\n")
    author = ["-c", "user.name=Desk", "-c", "user.email=desk@localhost"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "First"]):
        subprocess.run(["git", "-C", directory, *words], check=True)
    return directory


def database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER, text TEXT)")
        connection.executemany("INSERT INTO notes VALUES (?, ?)", [(n, f"note {n}") for n in range(1000)])
    return path
