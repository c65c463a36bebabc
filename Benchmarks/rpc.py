"""Hosts of servers on pipes: the part of an editor and of an agent that the benchmarks need."""
import json
import os
import subprocess
import threading
import time


class Host:
    """Starts a server and exchanges JSON messages with it. Each is preceded by its length, as LSP says."""

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
        while (message := self.read()) is not None:
            if "method" in message and "id" in message:
                # workspace/configuration needs a list as its answer, other requests accept null.
                wanted = message.get("params", {}).get("items") if message["method"] == \
                    "workspace/configuration" else None
                self.write({"jsonrpc": "2.0", "id": message["id"],
                            "result": [None] * len(wanted) if wanted else None})
            else:
                self.keep(message.get("id"), message)
        self.keep("end", True)

    def keep(self, number, message):
        """An answer; without a number it is news."""
        if number is None:
            return self.notice(message)
        with self.news:
            self.answers[number] = message
            self.news.notify_all()

    def notice(self, message):
        """News of the server; few hosts need any."""

    def read(self):
        length = None
        while line := self.process.stdout.readline().strip():
            name, value = line.split(b":", 1)
            if name.lower() == b"content-length":
                length = int(value)
        return None if length is None else json.loads(self.process.stdout.read(length))

    def write(self, message):
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def notify(self, method, params):
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, number, method, params):
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def ask(self, method, params, limit=120):
        """The result, and the milliseconds until it arrived."""
        self.count += 1
        number, start = self.count, time.monotonic()
        self.send(number, method, params)
        with self.news:
            done = self.news.wait_for(
                lambda: number in self.answers or "end" in self.answers, limit)
        if not done or number not in self.answers:
            raise RuntimeError(f"no answer to {method} within {limit} s" if not done else
                               f"it ended before it answered {method}")
        passed = (time.monotonic() - start) * 1000
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return self.result(answer), passed

    def result(self, answer):
        return answer["result"]

    def close(self):
        """Its exit code. A server on pipes ends when its input does."""
        try:
            self.process.stdin.close()
            return self.process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            return self.process.wait()


class Editor(Host):
    """A host of a language server."""

    def open(self, path, language):
        uri = "file://" + self.root
        self.ask("initialize", {
            "processId": os.getpid(), "rootUri": uri,
            "workspaceFolders": [{"uri": uri, "name": "bench"}],
            "capabilities": {"textDocument": {"completion": {}, "hover": {}}, "workspace": {}}})
        self.notify("initialized", {})
        with open(os.path.join(self.root, path)) as file:
            text = file.read()
        self.uri = f"{uri}/{path}"
        self.notify("textDocument/didOpen", {"textDocument": {
            "uri": self.uri, "languageId": language, "version": 1, "text": text}})

    def hover(self, line, column):
        """The text, and milliseconds."""
        result, passed = self.ask("textDocument/hover", {
            "textDocument": {"uri": self.uri}, "position": {"line": line, "character": column}})
        # sourcekit-lsp writes the keys in another order each time.
        return json.dumps(result["contents"], sort_keys=True) if result else "", passed

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


class TypeScript(Host):
    """A host of tsserver, which has a protocol of its own: a request is a line."""

    def open(self, path, language):
        self.path = os.path.join(self.root, path)
        self.write({"seq": 0, "type": "request", "command": "open", "arguments": {"file": self.path}})

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def keep(self, number, message):
        super().keep(number or (message.get("request_seq") if message.get("type") == "response" else None), message)

    def send(self, number, method, params):
        self.write({"seq": number, "type": "request", "command": method, "arguments": params})

    def result(self, answer):
        return answer.get("body")

    def hover(self, line, column):
        result, passed = self.ask("quickinfo", {"file": self.path, "line": line + 1, "offset": column + 1})
        return result["displayString"] if result else "", passed

    def complete(self, line, column):
        result, passed = self.ask("completions", {"file": self.path, "line": line + 1, "offset": column + 1})
        return sorted(item["name"] for item in result or []), passed

    complete_first = Editor.complete_first
    settle = Editor.settle


class ToolHost(Host):
    """A host of an MCP server: a message is a line."""

    def read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    write = TypeScript.write

    def open(self):
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "bench", "version": "1"}})
        self.notify("notifications/initialized", {})

    def tools(self):
        """Their names, and milliseconds."""
        result, passed = self.ask("tools/list", {})
        return [tool["name"] for tool in result["tools"]], passed

    def call(self, tool, **arguments):
        result, _ = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{tool}: {result['content']}")
        return result["content"][0]["text"]
