"""What kubectl, the controllers and the kubelet of a whole cluster do to sleeping pods, with Packaging/kubernetes as it is."""
import json
import os
import socket
import subprocess
import time
import urllib.request

from node import eventually
from pods import EAGER, PORT, Connection, ask, container, deployment, pod, service

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFESTS = os.path.normpath(f"{HERE}/../../../../Packaging/kubernetes")


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def start(cluster, name, annotations=None, containers=None, **spec):
    """A pod that is ready and adopted; its address."""
    cluster.apply(pod(cluster, name, annotations, containers, **spec))
    return started(cluster, name, containers)


def started(cluster, name, containers=None):
    eventually(f"{name} is ready", lambda: (cluster.status(name) or {}).get("ready"), 120, 0.5)
    for each in containers or [container()]:
        eventually(f"{name} is adopted", lambda: cluster.worker(name, each["name"]))
    address = cluster.get("pod", name)["status"]["podIP"]
    eventually(f"{name} listens", lambda: socket.create_connection((address, PORT), 5))
    return address


def watch_log(cluster):
    return cluster.kubectl("logs", "-n", "dormouse", "ds/dormouse", "-c", "watch").stdout


def check_manifests(cluster):
    """The manifests as they are: the DaemonSet runs, and the example's web server is adopted in shadow mode. Without that, and
    sooner than it says, it hibernates and is woken."""
    cluster.kubectl("apply", "-f", f"{MANIFESTS}/dormouse.yaml")
    cluster.kubectl("rollout", "status", "-n", "dormouse", "ds/dormouse", "--timeout=120s")
    eventually("the daemon answers", lambda: cluster.dormouse("ps").returncode == 0)
    if not cluster.nginx:
        return "without the example: this machine has no nginx"
    cluster.kubectl("apply", "-f", f"{MANIFESTS}/example.yaml")
    cluster.kubectl("rollout", "status", "deploy/web", "--timeout=120s")
    name = cluster.pod_of("web")["metadata"]["name"]
    eventually("it is adopted", lambda: cluster.worker(name))
    expect(f"adopted as default.{name}.web" in watch_log(cluster) and "shadow mode" in watch_log(cluster), "shadow mode")
    sooner = {"dormouse.io/mode": None, **EAGER}
    cluster.kubectl("patch", "deploy", "web", "--patch", json.dumps(
        {"spec": {"template": {"metadata": {"annotations": sooner}}}}))
    cluster.kubectl("rollout", "status", "deploy/web", "--timeout=120s")
    pod = eventually("one pod is left", lambda: cluster.pod_of("web"), pause=0.5)
    eventually("it hibernates", lambda: cluster.state(pod["metadata"]["name"]) == "hibernated")
    with urllib.request.urlopen(f"http://{pod['status']['podIP']}", timeout=60) as answer:
        expect(answer.read() == b"nginx\n", "its answer")
    cluster.kubectl("delete", "-f", f"{MANIFESTS}/example.yaml")


def check_service(cluster):
    """A Deployment's pod sleeps by itself; a kept connection through its Service, then a new one, wake it."""
    cluster.apply(deployment(pod(cluster, "served", EAGER)), service("served"))
    cluster.kubectl("rollout", "status", "deploy/served", "--timeout=120s")
    address = cluster.get("service", "served")["spec"]["clusterIP"]
    name = cluster.pod_of("served")["metadata"]["name"]
    eventually("it answers", lambda: ask(address, 80, "/probe"))
    kept = Connection(address, 80)
    answer, _ = kept.ask()
    worker = eventually("it is adopted", lambda: cluster.worker(name))
    awake = cluster.charge(worker["pid"])
    eventually("it hibernates", lambda: cluster.state(name) == "hibernated")
    asleep = cluster.charge(worker["pid"])
    expect(asleep is None or asleep < awake - (15 << 20), f"charged {awake}, asleep {asleep}")
    second, waited = kept.ask()
    expect(second == ["2", answer[1]], f"{answer}, then {second}")
    eventually("it hibernates again", lambda: cluster.state(name) == "hibernated")
    began = time.monotonic()
    third = ask(address, 80)
    connected = time.monotonic() - began
    expect(third == ["3", answer[1]], f"{third}")
    expect(cluster.status(name)["restartCount"] == 0, "it was restarted")
    return (f"charge {awake / 1e6:.1f} MB, asleep {(asleep or 0) / 1e6:.1f} MB; kept connection answered in "
            f"{waited * 1000:.0f} ms, a new one in {connected * 1000:.0f} ms")


def check_kubectl(cluster):
    """exec, cp, logs, port-forward, attach and statistics of a sleeping pod."""
    address = start(cluster, "asked", containers=[container(stdin=True)])
    digest = ask(address)[1]
    cluster.hibernate("asked")

    def sleeps(what):
        expect(cluster.state("asked") == "hibernated", f"{what} woke it")

    expect(cluster.kubectl("exec", "asked", "--", "/bin/echo", "hello").stdout == "hello\n", "exec")
    sleeps("exec")
    expect("ready" in cluster.kubectl("logs", "asked").stdout, "logs")
    sleeps("logs")
    cluster.kubectl("cp", cluster.path("programs/server.py"), "default/asked:/tmp/copy")
    cluster.kubectl("cp", "default/asked:/tmp/copy", cluster.path("copy"))
    expect(cluster.read("copy") == cluster.read("programs/server.py"), "cp")
    sleeps("cp")
    summary = json.loads(cluster.kubectl("get", "--raw", "/api/v1/nodes/node/proxy/stats/summary").stdout)
    used = next(each["containers"][0]["memory"] for each in summary["pods"] if each["podRef"]["name"] == "asked")
    sleeps("statistics")
    attached = subprocess.Popen(
        cluster.inside(cluster.binary("kubectl"), "--kubeconfig", cluster.path("admin.kubeconfig"), "attach", "asked"),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(3)
    sleeps("attach")
    attached.terminate()
    attached.wait()
    forward = subprocess.Popen(
        cluster.inside(cluster.binary("kubectl"), "--kubeconfig", cluster.path("admin.kubeconfig"), "port-forward",
                       "pod/asked", f"18080:{PORT}"), stdout=subprocess.PIPE, text=True)
    forward.stdout.readline()
    sleeps("port-forward")
    expect(ask("127.0.0.1", 18080) == ["2", digest], "port-forward")
    forward.terminate()
    forward.wait()
    return f"working set by statistics {used['workingSetBytes'] / 1e6:.1f} MB"


def check_probes(cluster):
    """An exec probe lets a pod sleep; those by HTTP, TCP and gRPC wake it, are answered in time, and nothing is restarted."""
    probes = {"exec": {"exec": {"command": ["/bin/echo", "alive"]}}, "http": {"httpGet": {"path": "/probe", "port": PORT}},
              "tcp": {"tcpSocket": {"port": PORT}}, "grpc": {"grpc": {"port": PORT}}}
    found = []
    for kind, probe in probes.items():
        program = "health.py" if kind == "grpc" else "server.py"
        start(cluster, f"by-{kind}", containers=[
            container(program=program, livenessProbe=dict(probe, periodSeconds=3))])
        name, wakes, deadline = f"by-{kind}", 0, time.monotonic() + 15
        cluster.hibernate(name)
        while time.monotonic() < deadline:
            if cluster.state(name) != "hibernated":
                wakes += 1
                cluster.hibernate(name)
        expect(cluster.status(name)["restartCount"] == 0, f"{name} was restarted")
        expect((wakes == 0) == (kind == "exec"), f"{kind} woke it {wakes} times")
        found.append(f"{kind} {wakes}")
        cluster.kubectl("delete", "pod", name, "--wait=false")
    return "wakes in 15 s: " + ", ".join(found)


def check_containers(cluster):
    """The containers of a pod and its sidecar sleep, and wake together; each keeps its memory."""
    containers = [container("web"), container("other", 8081)]
    sidecar = container("side", 8082, restartPolicy="Always")
    address = start(cluster, "several", containers=containers, initContainers=[sidecar])
    eventually("the sidecar is adopted", lambda: cluster.worker("several", "side"))
    digests = [ask(address, port)[1] for port in (8080, 8081, 8082)]
    names = ("web", "other", "side")
    for name in names:
        cluster.hibernate("several", name)
    expect(all(cluster.state("several", name) == "hibernated" for name in names), "one woke")
    expect(ask(address, 8081) == ["2", digests[1]], "the other's memory")
    eventually("all are awake", lambda: all(cluster.state("several", name) != "hibernated" for name in names), 20)
    for port, digest in zip((8080, 8082), (digests[0], digests[2])):
        expect(ask(address, port) == ["2", digest], f"memory at {port}")


def check_limits(cluster):
    """A Guaranteed pod with a memory limit sleeps; its limit is lowered while it sleeps, and raised again."""
    limits = {"cpu": "200m", "memory": "200Mi"}
    address = start(cluster, "limited", containers=[container(resources={"requests": limits, "limits": limits})])
    expect(cluster.get("pod", "limited")["status"]["qosClass"] == "Guaranteed", "its class")
    digest = ask(address)[1]
    cluster.hibernate("limited")
    began = time.monotonic()
    resize(cluster, "limited", "16Mi")
    lowered = time.monotonic() - began
    expect(cluster.state("limited") == "hibernated", "resizing woke it")
    resize(cluster, "limited", "200Mi")
    expect(cluster.status("limited")["restartCount"] == 0, "it was restarted")
    expect(ask(address) == ["2", digest], "its memory")
    return f"lowered to 16 MiB within {lowered:.1f} s"


def resize(cluster, name, memory):
    amount = {"memory": memory}
    cluster.kubectl("patch", "pod", name, "--subresource", "resize", "--patch", json.dumps(
        {"spec": {"containers": [{"name": "web", "resources": {"requests": amount, "limits": amount}}]}}))
    eventually(f"its limit is {memory}", lambda: (cluster.status(name) or {}).get("resources", {}).get(
        "limits", {}).get("memory") == memory, pause=0.3)


def check_users(cluster):
    """A pod with a user namespace of its own sleeps and wakes."""
    address = start(cluster, "mapped", hostUsers=False)
    digest = ask(address)[1]
    with open(f"/proc/{cluster.worker('mapped')['pid']}/uid_map") as file:
        mapped = file.read().split()
    expect(mapped[1] != "0", f"{mapped}")
    cluster.hibernate("mapped")
    began = time.monotonic()
    expect(ask(address) == ["2", digest], "its memory")
    return f"root in it is user {mapped[1]}; answered in {(time.monotonic() - began) * 1000:.0f} ms"


def ends(cluster, name, act):
    """What a sleeping pod's handler of SIGTERM writes, when `act` ends the pod."""
    digest = ask(start(cluster, name))[1]
    cluster.hibernate(name)
    follower = subprocess.Popen(
        cluster.inside(cluster.binary("kubectl"), "--kubeconfig", cluster.path("admin.kubeconfig"), "logs", "-f", name),
        stdout=subprocess.PIPE, text=True)
    began = time.monotonic()
    act()
    eventually(f"{name} has ended", lambda: cluster.get("pod", name) is None, 60, 0.3)
    waited = time.monotonic() - began
    text = follower.communicate(timeout=30)[0]
    expect(f"ended 1 {digest}" in text, f"its handler: {text}")
    expect(waited < 9, f"{waited:.1f} s")
    return f"{waited:.1f} s"


def check_deleted(cluster):
    """A sleeping pod that is deleted, evicted or drained ends by its own handler of SIGTERM with its memory."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted", "namespace": "default"}}
    found = ["delete " + ends(cluster, "deleted", lambda: cluster.kubectl("delete", "pod", "deleted", "--wait=false")),
             "eviction " + ends(cluster, "evicted", lambda: cluster.kubectl(
                 "create", "--raw", "/api/v1/namespaces/default/pods/evicted/eviction", "-f", "-",
                 input=json.dumps(eviction))),
             "drain " + ends(cluster, "drained", lambda: cluster.kubectl(
                 "drain", "node", "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=60s",
                 "--pod-selector=app=drained"))]
    cluster.kubectl("uncordon", "node")
    return ", ".join(found)


def check_rollout(cluster):
    """A restarted DaemonSet wakes what sleeps, and its next daemon adopts it again with the same policy."""
    address = start(cluster, "rolled")
    digest = ask(address)[1]
    cluster.hibernate("rolled")
    cluster.kubectl("rollout", "restart", "-n", "dormouse", "ds/dormouse")
    cluster.kubectl("rollout", "status", "-n", "dormouse", "ds/dormouse", "--timeout=180s")
    eventually("it is adopted again", lambda: cluster.worker("rolled"))
    expect(ask(address) == ["2", digest], "its memory")
    cluster.hibernate("rolled")
    expect(ask(address) == ["3", digest], "its memory under the next daemon")


def check_restarts(cluster):
    """A restarted kubelet, then a restarted containerd, keep a sleeping pod as it is; new pods are adopted afterwards."""
    address = start(cluster, "kept")
    digest = ask(address)[1]
    cluster.hibernate("kept")
    before = cluster.status("kept")["containerID"]
    cluster.end("kubelet")
    cluster.start_kubelet()
    # While it starts it ends where containerd doesn't answer.
    eventually("kubelet answers", lambda: urllib.request.urlopen("http://127.0.0.1:10248/healthz", timeout=5))
    cluster.end("containerd")
    cluster.start_containerd()
    time.sleep(10)
    eventually("the node is ready", cluster.is_ready, pause=1)
    expect(cluster.state("kept") == "hibernated", "it was woken")
    status = cluster.status("kept")
    expect(status["containerID"] == before and status["restartCount"] == 0, f"{status}")
    ask(start(cluster, "after"))
    expect(ask(address) == ["2", digest], "its memory")


def check_killed_daemon(cluster):
    """The kubelet starts a killed daemon again, and the next one wakes what slept with its memory."""
    address = start(cluster, "orphan")
    digest = ask(address)[1]
    cluster.hibernate("orphan")
    began = time.monotonic()
    daemon = cluster.request("ps")["daemon"]["pid"]
    os.kill(daemon, 9)
    answer = ask(address)
    waited = time.monotonic() - began
    expect(answer == ["2", digest], f"{answer}")
    eventually("it is a worker again", lambda: cluster.worker("orphan"))
    return f"answered {waited:.1f} s after the daemon was killed"


def check_events(cluster):
    """containerd's stream of events is followed: a new pod is adopted at once, and its end is noticed."""
    start(cluster, "quick")
    expect("adopted as default.quick.web" in watch_log(cluster), watch_log(cluster))
    cluster.kubectl("delete", "pod", "quick")
    eventually("it is forgotten", lambda: cluster.worker("quick") is None, 20)


CHECKS = {name[6:]: check for name, check in list(globals().items()) if name.startswith("check_")}
