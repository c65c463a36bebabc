"""Probes that are answered while a pod sleeps, because its annotations name them."""
import time

from cluster_checks import expect, start
from node import eventually
from pods import EAGER, POLICY, PORT, ask, container

CHECKS_PORT = 8081


def check_answered(cluster):
    """With the annotation of its probes a pod sleeps through them, is ready, and serves afterwards with its memory."""
    annotations = dict(POLICY, **{
        "dormouse.io/health_checks_while_asleep": f"{CHECKS_PORT}/livez,{CHECKS_PORT}/readyz,{PORT}"})
    probes = {
        "startupProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1, "failureThreshold": 60},
        "livenessProbe": {"httpGet": {"path": "/livez", "port": CHECKS_PORT}, "periodSeconds": 3},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": CHECKS_PORT}, "periodSeconds": 3}}
    # The second container shares the network of the first, and is probed at a port of its own.
    containers = [container(program="checked.py", **probes),
                  container("other", 8082, livenessProbe={"tcpSocket": {"port": 8082}, "periodSeconds": 3})]
    annotations["other.dormouse.io/health_checks_while_asleep"] = "8082"
    address = start(cluster, "answered", annotations, containers)
    first = ask(address)
    for name in ("web", "other"):
        cluster.hibernate("answered", name)
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        for name in ("web", "other"):
            worker = cluster.worker("answered", name)
            expect(worker["state"] == "hibernated", f"{name} was woken: {worker}")
        time.sleep(0.2)
    counts = [cluster.worker("answered", name).get("answeredAsleep", 0) for name in ("web", "other")]
    expect(counts[0] >= 8 and counts[1] >= 4, f"{counts} answered")
    second = ask(address)
    expect(second == ["2", first[1]], f"{first}, then {second}")
    for name in ("web", "other"):
        status = cluster.status("answered", name)
        expect(status["ready"] and status["restartCount"] == 0, f"{status}")
    sleeps_by_itself(cluster)
    return f"{counts[0]} probes by httpGet and {counts[1]} by tcpSocket answered in 15 s"


def sleeps_by_itself(cluster):
    """Probes at a port of their own don't keep a pod awake, although each comes sooner than it counts as idle."""
    probe = {"httpGet": {"path": "/livez", "port": CHECKS_PORT}, "periodSeconds": 1}
    annotations = dict(EAGER, **{"dormouse.io/health_checks_while_asleep": f"{CHECKS_PORT}/livez",
                                 "dormouse.io/foreground.idle_after": "5s"})
    start(cluster, "checked", annotations, [container(program="checked.py", livenessProbe=probe)])
    eventually("it hibernates", lambda: cluster.state("checked") == "hibernated")
    time.sleep(3)
    expect(cluster.state("checked") == "hibernated", f"it was woken: {cluster.worker('checked')}")
