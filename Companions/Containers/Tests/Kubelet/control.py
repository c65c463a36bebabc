"""Requests on the daemon's control socket, as docs/control-protocol.md has them. Programs would cost more time than the checks
that ask for a state ten times a second."""
import json
import socket


def request(path, verb, worker=None, seconds=60):
    """The response. A daemon that doesn't answer in time raises TimeoutError."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        text = {"id": 1, "verb": verb} | ({"worker": worker} if worker else {})
        connection.sendall(json.dumps(text).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            part = connection.recv(65536)
            if not part:
                raise ConnectionResetError("the daemon closed the connection")
            answer += part
        return json.loads(answer)
