"""Objects of the tests' cluster: pods whose programs are this machine's, and what is asked of them."""
import socket
import time
import urllib.request

from node import IMAGE

# It sleeps when it is asked to.
POLICY = {"dormouse.io/policy": "server", "dormouse.io/background.suspend_after": "never",
          "dormouse.io/hibernate.after": "never", "dormouse.io/hibernate.cooldown": "0s"}
# It sleeps within seconds by itself.
EAGER = {"dormouse.io/policy": "server", "dormouse.io/foreground.idle_after": "1s",
         "dormouse.io/background.suspend_after": "1s", "dormouse.io/hibernate.after": "1s",
         "dormouse.io/hibernate.cooldown": "1s"}
PORT = 8080


def container(name="web", port=PORT, program="server.py", **more):
    return dict({
        "name": name, "image": IMAGE, "imagePullPolicy": "Never",
        "command": ["/usr/bin/python3", f"/test/{program}", str(port), "0.0.0.0"],
        "volumeMounts": [{"name": "usr", "mountPath": "/usr", "readOnly": True},
                         {"name": "test", "mountPath": "/test", "readOnly": True}]}, **more)


def pod(cluster, name, annotations=None, containers=None, **spec):
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name, "test": "dormouse"},
                     "annotations": POLICY if annotations is None else annotations},
        "spec": dict({
            "terminationGracePeriodSeconds": 10, "dnsPolicy": "Default", "containers": containers or [container()],
            "volumes": [{"name": "usr", "hostPath": {"path": "/usr"}},
                        {"name": "test", "hostPath": {"path": cluster.path("programs")}}]}, **spec)}


def deployment(pod):
    name = pod["metadata"]["name"]
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": {"test": "dormouse"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
                 "template": {"metadata": pod["metadata"], "spec": pod["spec"]}}}


def service(name):
    return {"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "default", "labels": {"test": "dormouse"}},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": PORT}]}}


def ask(address, port=PORT, path="/"):
    """The count, and the digest of the memory."""
    with urllib.request.urlopen(f"http://{address}:{port}{path}", timeout=60) as answer:
        return answer.read().decode().split()


class Connection:
    """One connection that is kept between requests."""

    def __init__(self, address, port=PORT):
        self.socket = socket.create_connection((address, port), 60)

    def ask(self, path="/"):
        """The answer, and the seconds until it came."""
        began = time.monotonic()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer or not answer.partition(b"\r\n\r\n")[2]:
            part = self.socket.recv(65536)
            if not part:
                raise AssertionError("the connection was closed")
            answer += part
        return answer.partition(b"\r\n\r\n")[2].decode().split(), time.monotonic() - began
