"""A helper that talks over standard input and output, as language servers do.

Each message is `Content-Length: N`, an empty line, and N bytes of JSON. What it answers, by method:

    fill      allocates `megabytes` of random bytes, and gives their checksum
    sum       the checksum of that memory, computed again
    echo      the `text`, as it came
    pid       its pid, and its parent's
    sleep     after `seconds`
    exit      ends with `code`
    shout     `bytes` of output at once, then continues
    child     starts `sleep`, and gives its pid
    unheard   starts `command` without pipes, and gives its pid
    helper    starts `command`, another helper, and gives its pid
    relay     the helper's answer to `method` with `params`
    facts     environment, arguments, directory, open descriptors, ignored signals

`catch` installs a handler for a signal, and `caught` lists the signals that came; `default` restores a
signal's default effect. At the end of its input it exits with 7.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time

memory = []
caught = []
helpers = []


def read(file=sys.stdin.buffer):
    length = None
    while True:
        line = file.readline()
        if not line:
            return None
        line = line.strip()
        if not line:
            break
        name, value = line.split(b":")
        if name == b"Content-Length":
            length = int(value)
    return json.loads(file.read(length))


def write(message, file=sys.stdout.buffer):
    body = json.dumps(message).encode()
    file.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    file.flush()


def checksum():
    digest = hashlib.sha256()
    for block in memory:
        digest.update(block)
    return digest.hexdigest()


def fill(megabytes):
    source = random.Random(megabytes)
    memory[:] = [source.randbytes(1 << 18) * 4 for _ in range(megabytes)]
    return checksum()


def facts():
    with open("/proc/self/status") as status:
        ignored = next(line.split()[1] for line in status if line.startswith("SigIgn"))
    links = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            links[name] = os.readlink("/proc/self/fd/" + name)
        except OSError:
            pass
    with open("/proc/self/environ", "rb") as file:
        environment = file.read().hex()
    with open("/proc/self/cmdline", "rb") as file:
        arguments = file.read().hex()
    return {
        "environment": environment, "arguments": arguments, "directory": os.getcwd(),
        "descriptors": links, "ignored": int(ignored, 16),
    }


def answer(method, params):
    if method == "fill":
        return fill(params["megabytes"])
    if method == "sum":
        return checksum()
    if method == "echo":
        return params["text"]
    if method == "pid":
        return [os.getpid(), os.getppid()]
    if method == "sleep":
        time.sleep(params["seconds"])
        return "slept"
    if method == "exit":
        sys.stdout.flush()
        os._exit(params["code"])
    if method == "shout":
        return "x" * params["bytes"]
    if method == "child":
        return subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid
    if method == "unheard":
        return subprocess.Popen(params["command"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL).pid
    if method == "helper":
        helpers.append(subprocess.Popen(params["command"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE))
        return helpers[-1].pid
    if method == "relay":
        write({"id": 0, **params}, helpers[-1].stdin)
        return read(helpers[-1].stdout)["result"]
    if method == "catch":
        signal.signal(params["signal"], lambda number, frame: caught.append(number))
        return "ready"
    if method == "default":
        signal.signal(params["signal"], signal.SIG_DFL)
        return "ready"
    if method == "caught":
        return caught
    if method == "facts":
        return facts()
    return None


while True:
    request = read()
    if request is None:
        sys.exit(7)
    write({"id": request["id"], "result": answer(request["method"], request.get("params", {}))})
