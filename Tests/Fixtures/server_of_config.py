"""Acts as a host of stdio servers: server_of_config.py FILE LOG TABLE... NAME

Reads the configuration with Python's own parser, starts the server NAME of that table by `command` and `args`
(or by `argv`), asks it something, waits until LOG says that it is hibernated, asks again, and ends it. It prints
the answers.
"""

import json
import subprocess
import sys
import time

path, log, keys = sys.argv[1], sys.argv[2], sys.argv[3:]
with open(path, "rb") as file:
    if path.endswith(".toml"):
        import tomllib

        server = tomllib.load(file)
    else:
        server = json.load(file)
for key in keys:
    server = server[key]
command = server["argv"] if "argv" in server else [server["command"]] + server.get("args", [])
process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ask(text):
    body = json.dumps({"id": 1, "method": "echo", "params": {"text": text}}).encode()
    process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    process.stdin.flush()
    length = int(process.stdout.readline().split(b":")[1])
    process.stdout.readline()
    print(json.loads(process.stdout.read(length))["result"], flush=True)


ask("before")
deadline = time.monotonic() + 60
while "→ hibernated" not in open(log, encoding="utf-8").read():
    if time.monotonic() > deadline:
        sys.exit("it wasn't hibernated: " + open(log, encoding="utf-8").read())
    time.sleep(0.05)
ask("after")
process.stdin.close()
print(process.wait(30))
