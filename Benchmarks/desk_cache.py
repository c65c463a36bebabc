"""The programs of desk.py that aren't part of the machine: installed once into a directory, and used from there."""
import os
import shutil
import subprocess
import sys

ENVIRONMENTS = {
    "main": ["jupyterlab", "ipykernel", "numpy", "websocket-client", "python-lsp-server", "basedpyright",
             "mcp-server-git", "mcp-server-fetch", "mcp-server-time", "playwright"],
    # It uses a name that version 2 of the mcp package no longer has.
    "sqlite": ["mcp-server-sqlite", "mcp<2"],
}
NEEDED = ["node", "git", "clangd", "sourcekit-lsp"]


class Cache:
    def __init__(self, directory):
        self.directory = os.path.realpath(directory)

    def at(self, *names):
        return os.path.join(self.directory, *names)

    def fill(self):
        """Installs what isn't there; exits if something can't be installed."""
        missing = [name for name in NEEDED if not shutil.which(name)]
        if missing:
            sys.exit(f"desk: needs {', '.join(missing)} in PATH (clangd and sourcekit-lsp are in a Swift toolchain)")
        os.makedirs(self.directory, exist_ok=True)
        for name, packages in ENVIRONMENTS.items():
            if not os.path.exists(self.at(name, "complete")):
                self.run(f"the Python packages {', '.join(packages)}", [
                    [sys.executable, "-m", "venv", "--clear", self.at(name)],
                    [self.at(name, "bin", "pip"), "install", "-q", *packages]])
                open(self.at(name, "complete"), "w").close()
        if not os.path.exists(self.tsserver):
            os.makedirs(self.at("packages"), exist_ok=True)
            self.run("the Debian package node-typescript", [
                ["sh", "-c", "apt-get download -qq node-typescript && dpkg -x node-typescript_*.deb ../typescript"]],
                self.at("packages"))

    def run(self, what, commands, directory=None):
        print(f"desk: installing {what} into {self.directory}", file=sys.stderr, flush=True)
        for command in commands:
            if subprocess.run(command, cwd=directory, stdout=sys.stderr).returncode:
                sys.exit(f"desk: {what} can't be installed. They are needed once; afterwards the directory of "
                         "--cache has them, also on another machine of this kind.")

    @property
    def python(self):
        return self.at("main", "bin", "python")

    @property
    def tsserver(self):
        return self.at("typescript", "usr", "share", "nodejs", "typescript", "lib", "tsserver.js")

    def playwright(self):
        """The MCP server that the package contains, with its own node."""
        script = ("import os, playwright; print(os.path.join(os.path.dirname(playwright.__file__), 'driver'))")
        driver = subprocess.run([self.python, "-c", script], check=True, capture_output=True, text=True).stdout.strip()
        return [f"{driver}/node", f"{driver}/package/lib/entry/mcp.js"]

    def versions(self):
        words = []
        for environment, names in (("main", ENVIRONMENTS["main"]), ("sqlite", ["mcp-server-sqlite"])):
            script = f"from importlib.metadata import version\nfor n in {names!r}: print(n, version(n))"
            words += subprocess.run([self.at(environment, "bin", "python"), "-c", script], check=True,
                                    capture_output=True, text=True).stdout.splitlines()
        for command in (["node", "--version"], ["clangd", "--version"]):
            words.append(f"{command[0]} " + subprocess.run(command, capture_output=True, text=True, check=True)
                         .stdout.splitlines()[0].removeprefix("clangd version ").split(" (")[0])
        return ", ".join(words)
