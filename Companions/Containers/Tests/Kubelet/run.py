#!/usr/bin/env python3
"""run.py --kubelet PATH --dormouse PATH --containers PATH [--image PATH] [CHECK…]: what a real kubelet does to sleeping pods.
As root, on a machine with containerd and runc. It starts a node of its own and ends it. Exit code 1: a check failed."""
import argparse
import glob
import signal
import sys
import time
import traceback
import urllib.request

from node import Node, eventually, free_port

POLICY = {"dormouse.io/policy": "server", "dormouse.io/background.suspend_after": "never",
          "dormouse.io/hibernate.after": "never", "dormouse.io/hibernate.cooldown": "0s"}


def ask(port, path="/"):
    """The count, and the digest of the memory."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return answer.read().decode().split()


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def start(node, name, annotations=POLICY, **container):
    """A pod that runs, and is adopted if it is annotated; its port."""
    port = free_port()
    for value in container.values():
        for probe in (value.get("httpGet"), value.get("tcpSocket")):
            if probe is not None:
                probe.update(port=port, host="127.0.0.1")
    node.add(name, port, annotations, **container)
    eventually(f"{name} listens", lambda: ask(port, "/probe"))
    eventually(f"{name} is ready for kubelet", lambda: (node.status(name) or {}).get("ready"))
    if annotations:
        eventually(f"{name} is adopted", lambda: node.worker(name))
    return port


def check_sleep(node):
    """An annotated pod is adopted, sleeps through exec probes, exec, logs and statistics, and wakes at a connection."""
    plain = start(node, "plain", annotations=None)
    probe = {"exec": {"command": ["/bin/echo", "alive"]}, "periodSeconds": 1}
    port = start(node, "web", livenessProbe=probe, readinessProbe=probe)
    expect(list(node.workers()) == ["default.web-node.web"], f"workers: {list(node.workers())}")
    digest = ask(port)[1]
    before = node.status("web")
    awake = node.charge("web")
    node.hibernate("web")
    time.sleep(8)
    after = node.status("web")
    expect(node.state("web") == "hibernated", "exec probes woke it")
    expect(after["ready"] and after["restartCount"] == 0, f"{after}")
    expect(after["containerID"] == before["containerID"], "another container")
    expect(node.execute("web", "/bin/echo hello").strip() == "hello", "exec")
    expect("ready" in node.logs("web"), "logs")
    expect(node.state("web") == "hibernated", "exec or logs woke it")
    asleep = node.charge("web")
    expect(asleep is None or asleep < awake - (15 << 20), f"charged {awake}, asleep {asleep}")
    began = time.monotonic()
    answer = ask(port)
    waited = time.monotonic() - began
    expect(answer == ["2", digest], f"{answer}")
    ask(plain)
    charges = f"charge {awake / 1e6:.1f} MB, asleep {asleep / 1e6:.1f} MB; " if asleep is not None else ""
    return f"{charges}answered in {waited * 1000:.0f} ms"


def check_restarted_kubelet(node):
    """A restarted kubelet, and a restarted containerd, keep a sleeping pod as it is."""
    port = start(node, "kept")
    digest = ask(port)[1]
    node.hibernate("kept")
    before = node.status("kept")["containerID"]
    node.end("kubelet")
    node.start_kubelet()
    eventually("kubelet knows the pod", lambda: (node.status("kept") or {}).get("ready"))
    node.end("containerd")
    node.start_containerd()
    time.sleep(5)
    status = eventually("kubelet reads its state", lambda: node.status("kept"))
    expect(node.state("kept") == "hibernated", "it was woken")
    expect(status["containerID"] == before and status["restartCount"] == 0, f"{status}")
    expect(ask(port) == ["2", digest], "its memory")


def check_deleted(node):
    """A pod that is deleted asleep ends by its own handler of SIGTERM, with its memory, within the grace period."""
    port = start(node, "gone")
    digest = ask(port)[1]
    node.hibernate("gone")
    log = eventually(
        "its log", lambda: glob.glob(node.path("log/pods/default_gone-node_*/web/0.log")))[0]
    follower = open(log)
    node.remove("gone")
    began = time.monotonic()
    eventually("its worker is forgotten", lambda: node.worker("gone") is None, 60)
    waited = time.monotonic() - began
    text = follower.read()
    expect(f"ended 1 {digest}" in text, f"its handler: {text}")
    expect(waited < 8, f"{waited:.1f} s")
    return f"ended {waited:.1f} s after its manifest was removed"


def probed(node, name, kind, **probe):
    """How often the probe of this kind wakes the pod within 15 s, each time after it was hibernated."""
    container = {"livenessProbe": dict(probe, periodSeconds=3, timeoutSeconds=1, failureThreshold=1)}
    port = start(node, name, **container)
    digest = ask(port)[1]
    wakes, deadline = 0, time.monotonic() + 15
    node.hibernate(name)
    while time.monotonic() < deadline:
        if node.state(name) != "hibernated":
            wakes += 1
            node.hibernate(name)
        time.sleep(0.1)
    status = node.status(name)
    expect(status["restartCount"] == 0, f"kubelet restarted it: {status}")
    expect(ask(port)[1] == digest, "its memory")
    return wakes


def check_http_probe(node):
    """A liveness probe by HTTP with 1 s of patience wakes a sleeping pod, is answered, and never has it restarted."""
    wakes = probed(node, "http", "http", httpGet={"path": "/probe"})
    expect(wakes >= 2, f"woken {wakes} times")
    return f"woken {wakes} times in 15 s"


def check_tcp_probe(node):
    """A liveness probe by TCP never has a sleeping pod restarted."""
    wakes = probed(node, "tcp", "tcp", tcpSocket={})
    return f"woken {wakes} times in 15 s"


def check_killed_daemon(node):
    """While no daemon is there an exec probe passes; the next daemon wakes the pod with its memory."""
    probe = {"exec": {"command": ["/bin/echo", "alive"]}, "periodSeconds": 1}
    port = start(node, "orphan", livenessProbe=probe)
    digest = ask(port)[1]
    node.hibernate("orphan")
    node.processes["daemon"].kill()
    node.end("daemon")
    time.sleep(5)
    expect(node.status("orphan")["restartCount"] == 0, "kubelet restarted it")
    node.start_daemon()
    eventually("it is a worker again", lambda: node.worker("orphan"))
    expect(ask(port) == ["2", digest], "its memory")


def check_probed_without_daemon(node):
    """While no daemon is there a probe by TCP passes, one by HTTP fails, and kubelet restarts that container."""
    # One after the other: where both have to sleep at the same time, on a slow machine the probe of one wakes it before the
    # other sleeps, again and again.
    for name, probe, answer in (("byhttp", {"httpGet": {"path": "/probe"}}, "1"), ("bytcp", {"tcpSocket": {}}, "2")):
        port = start(node, name, livenessProbe=dict(probe, periodSeconds=5, timeoutSeconds=1, failureThreshold=2))
        digest = ask(port)[1]
        node.hibernate(name)
        node.processes["daemon"].kill()
        node.end("daemon")
        if name == "byhttp":
            eventually("kubelet restarts it", lambda: (node.status(name) or {}).get("restartCount"), 60)
        else:
            time.sleep(20)
            expect(node.status(name)["restartCount"] == 0, "kubelet restarted the one by TCP")
        node.start_daemon()
        eventually(f"{name} is a worker", lambda: node.worker(name))
        expect(ask(port) == [answer, digest], f"the memory of {name}")


def check_agent(node):
    """Dormouse's daemon in the pod of Packaging/kubernetes, with its rights: hibernates another pod, and is stopped."""
    if not node.image:
        return "left out: no --image"
    port = start(node, "guest", annotations=None)
    digest = ask(port)[1]
    tasks = dict(line.split()[:2] for line in node.ctr("tasks", "ls").stdout.splitlines()[1:])
    pid = tasks[node.status("guest")["containerID"].split("//")[1]]
    node.add_agent(node.image)

    def dormouse(words):
        try:
            return node.execute("agent", f"/usr/bin/dormouse {words} --socket /run/dormouse/control.sock", "daemon")
        except OSError as error:
            return str(error)

    eventually("the daemon answers", lambda: "no workers" in dormouse("ps"), 30)
    expect("is managed" in dormouse(
        f"adopt guest --pid {pid} --policy server --set hibernate.after=never --set hibernate.cooldown=0s"), "adopt")
    eventually("it hibernates", lambda: dormouse("hibernate guest") and '"hibernated"' in dormouse("ps --json"))
    began = time.monotonic()
    expect(ask(port) == ["2", digest], "its memory")
    waited = time.monotonic() - began
    eventually("it hibernates again", lambda: dormouse("hibernate guest") and '"hibernated"' in dormouse("ps --json"))
    node.remove("agent")
    eventually("it has ended", lambda: node.status("agent", "daemon") is None)
    expect(ask(port) == ["3", digest], "its memory after the daemon's end")
    return f"answered in {waited * 1000:.0f} ms"


CHECKS = {name[6:]: check for name, check in list(globals().items()) if name.startswith("check_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("kubelet", "dormouse", "containers"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    parser.add_argument("--image", help="an archive of `make image`")
    options = parser.parse_args()
    node = Node(options.kubelet, options.dormouse, options.containers)
    failures = 0
    # What was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        node.start()
        node.image = options.image and node.load(options.image)
        print(f"kubelet {node.version}, {node.ctr('--version').stdout.strip()}", flush=True)
        for name in options.checks or CHECKS:
            began = time.monotonic()
            try:
                found = CHECKS[name](node)
                print(f"ok {name} ({time.monotonic() - began:.0f} s)" + (f": {found}" if found else ""), flush=True)
            except Exception:
                failures += 1
                print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
            # Their probes would keep the machine busy.
            node.remove_all()
    except Exception:
        failures += 1
        print(f"FAILED: the node\n{traceback.format_exc()}", flush=True)
    finally:
        if failures:
            for name in ("daemon", "watch", "kubelet", "containerd"):
                try:
                    print(f"--- {name}\n" + "".join(node.read(f"{name}.log").splitlines(True)[-25:]), flush=True)
                except OSError:
                    pass
        node.stop()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
