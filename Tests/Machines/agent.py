#!/usr/bin/python3
"""Runs inside a machine: commands from the host, one JSON object a line over a virtio-serial port.

{"id": N, "command": TEXT, "seconds": LIMIT} is answered by {"id": N, "output": TEXT} for what it prints, and
{"id": N, "code": STATUS} at its end: 124 if the limit was over. {"id": N, "file": PATH, "base64": TEXT} writes a file."""
import base64
import json
import os
import select
import signal
import subprocess
import threading
import time

PORT = "/dev/virtio-ports/agent"
while not os.path.exists(PORT):
    time.sleep(0.1)
port = os.open(PORT, os.O_RDWR)
lock = threading.Lock()


def send(message):
    data = (json.dumps(message) + "\n").encode()
    with lock:
        while data:
            data = data[os.write(port, data):]


def execute(request):
    end = time.monotonic() + request["seconds"]
    child = subprocess.Popen(["/bin/bash", "-c", request["command"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, start_new_session=True, cwd="/")
    os.set_blocking(child.stdout.fileno(), False)
    code = None
    while True:
        # What the command leaves running may hold its output open: its own end counts.
        code = child.poll()
        select.select([child.stdout], [], [], 0 if code is not None else 0.2)
        data = child.stdout.read()
        if data:
            send({"id": request["id"], "output": data.decode("utf8", "replace")})
        elif code is not None:
            break
        if code is None and time.monotonic() > end:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            code = 124
            break
    send({"id": request["id"], "code": code})


def serve(request):
    try:
        if "file" in request:
            os.makedirs(os.path.dirname(request["file"]), exist_ok=True)
            with open(request["file"], "wb") as file:
                file.write(base64.b64decode(request["base64"]))
            os.chmod(request["file"], 0o755)
            send({"id": request["id"], "code": 0})
        else:
            execute(request)
    except Exception as error:
        send({"id": request["id"], "output": f"agent: {error!r}\n"})
        send({"id": request["id"], "code": 125})


rest = b""
while True:
    data = os.read(port, 65536)
    if not data:
        time.sleep(0.1)  # The host isn't connected.
        continue
    *lines, rest = (rest + data).split(b"\n")
    for line in lines:
        try:
            request = json.loads(line)
        except ValueError:
            continue  # The rest of a line from before a snapshot.
        threading.Thread(target=serve, args=(request,), daemon=True).start()
