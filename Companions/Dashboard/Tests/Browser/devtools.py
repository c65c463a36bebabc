"""A page in headless Chromium, over the DevTools protocol, with nothing but Python's library."""
import base64
import json
import os
import re
import select
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


class WebSocket:
    """The client's side of RFC 6455, as far as DevTools needs it: text, no compression."""

    def __init__(self, url):
        host, port, path = re.match(r"ws://([^:/]+):(\d+)(/.*)", url).groups()
        self.socket = socket.create_connection((host, int(port)), 20)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.rest = b""
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.socket.recv(4096)
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(head.decode())

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = bytes([0x80 | len(data)]) if len(data) < 126 else (
            bytes([0x80 | 126]) + struct.pack(">H", len(data)) if len(data) < 65536
            else bytes([0x80 | 127]) + struct.pack(">Q", len(data)))
        self.socket.sendall(b"\x81" + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def take(self, count):
        while len(self.rest) < count:
            part = self.socket.recv(1 << 16)
            if not part:
                raise RuntimeError("the browser has closed the connection")
            self.rest += part
        part, self.rest = self.rest[:count], self.rest[count:]
        return part

    def receive(self, limit):
        """A whole message, or None after `limit` seconds."""
        message = b""
        while True:
            if not self.rest and not select.select([self.socket], [], [], limit)[0]:
                return None
            first, second = self.take(2)
            size = second & 0x7F
            if size == 126:
                size = struct.unpack(">H", self.take(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.take(8))[0]
            part = self.take(size)
            if first & 0x0F in (0, 1):
                message += part
                if first & 0x80:
                    return message.decode()


class Page:
    """One page. `errors` has what its console and the network reported, `requests` all addresses."""

    def __init__(self, program):
        self.directory = tempfile.TemporaryDirectory(prefix="dormouse-browser.", ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
             "--remote-debugging-port=0", f"--user-data-dir={self.directory.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if match := re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
                break
        else:
            raise RuntimeError("Chromium ended before it listened")
        with urllib.request.urlopen(f"http://127.0.0.1:{match[1]}/json/list", timeout=20) as answer:
            targets = json.load(answer)
        self.socket = WebSocket(next(one for one in targets if one["type"] == "page")["webSocketDebuggerUrl"])
        self.number, self.errors, self.requests = 0, [], []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()

    def note(self, message):
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(values["exceptionDetails"])[:400])
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.errors.append(values["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "assert"):
            self.errors.append(json.dumps(values["args"])[:400])
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])

    def call(self, method, **values):
        self.number += 1
        number = self.number
        self.socket.send(json.dumps({"id": number, "method": method, "params": values}))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            text = self.socket.receive(1)
            if text is None:
                continue
            message = json.loads(text)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)
        raise RuntimeError(f"{method}: no answer within 60 s")

    def evaluate(self, text):
        result = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:600])
        return result["result"].get("value")

    def wait(self, what, text, limit=30):
        """Until the expression is true in the page."""
        deadline = time.monotonic() + limit
        last = ""
        while time.monotonic() < deadline:
            try:
                if self.evaluate(f"!!({text})"):
                    return
                last = ""
            except RuntimeError as error:
                # The page may be changing to another one.
                last = f" ({error})"
            time.sleep(0.1)
        raise RuntimeError(f"not within {limit} s: {what}{last}; the page says: "
                           + str(self.evaluate("document.body.innerText"))[:600])

    def go(self, url):
        self.call("Page.navigate", url=url)

    def click(self, selector):
        """A real click in the middle of an element."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}}); "
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1],
                      button="none" if kind == "mouseMoved" else "left", clickCount=0 if kind == "mouseMoved" else 1)

    def key(self, name, code=0, text=""):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=code, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=False)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
