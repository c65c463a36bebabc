"""What dormouse-containers reports to the API server, with the manifests beside dormouse.yaml."""
import json
import os

from cluster_checks import MANIFESTS, expect, started
from node import eventually
from pods import EAGER, ask, container, pod


def check_reports(cluster):
    """Events, a condition, and with --resize-requests a smaller request while the pod sleeps."""
    if not os.path.exists(f"{MANIFESTS}/kustomization.yaml"):
        return "left out: there is no kustomization.yaml"
    cluster.kubectl("apply", "-k", MANIFESTS)
    cluster.kubectl("apply", "-f", f"{MANIFESTS}/requests.yaml")
    spec = cluster.get("daemonset", "dormouse", "dormouse")["spec"]["template"]["spec"]
    command = next(each["command"] for each in spec["containers"] if each["name"] == "watch")
    patch = {"name": "watch", "command": command + ["--resize-requests"]}
    cluster.kubectl("patch", "-n", "dormouse", "ds", "dormouse", "--patch", json.dumps(
        {"spec": {"template": {"spec": {"containers": [patch]}}}}))
    cluster.kubectl("rollout", "status", "-n", "dormouse", "ds/dormouse", "--timeout=180s")
    containers = [container(resources={"requests": {"memory": "100Mi"}})]
    cluster.apply(pod(cluster, "reported", EAGER, containers))
    digest = ask(started(cluster, "reported"))[1]
    eventually("it hibernates", lambda: cluster.state("reported") == "hibernated")
    eventually("its condition is True", lambda: condition(cluster) == "True", pause=1)
    eventually("its request is smaller", lambda: request(cluster) != "100Mi", pause=1)
    asleep = request(cluster)
    answer = ask(cluster.get("pod", "reported")["status"]["podIP"])
    expect(answer == ["2", digest], f"{answer}")
    eventually("its request is restored", lambda: request(cluster) == "100Mi", pause=1)
    events = cluster.kubectl("get", "events", "--field-selector", "involvedObject.name=reported",
                             "-o", "jsonpath={.items[*].reason}").stdout.split()
    expect({"Adopted", "Hibernated", "Woken"} <= set(events), f"{events}")
    expect(cluster.status("reported")["restartCount"] == 0, "it was restarted")
    # What is left when nothing reports any more.
    eventually("it hibernates again", lambda: condition(cluster) == "True", pause=1)
    cluster.kubectl("delete", "-n", "dormouse", "ds/dormouse")
    eventually("its condition isn't True", lambda: condition(cluster) != "True", 30, 1)
    expect(request(cluster) == "100Mi", "its request without the DaemonSet")
    cluster.kubectl("apply", "-f", f"{MANIFESTS}/dormouse.yaml")
    return f"its request while it sleeps: {asleep}"


def condition(cluster):
    return next((each["status"] for each in cluster.get("pod", "reported")["status"]["conditions"]
                 if each["type"] == "dormouse.io/Hibernated"), None)


def request(cluster):
    return cluster.get("pod", "reported")["spec"]["containers"][0]["resources"]["requests"]["memory"]
