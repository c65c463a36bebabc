"""A node of Kubernetes without an API server: containerd, a kubelet that reads manifests from a directory, Dormouse's
daemon, and dormouse-containers between them. Images are made here; pods are in this machine's network."""
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE, PAUSE = "localhost/dormouse-test:1", "localhost/dormouse-pause:1"
NAME = "node"
# What a kubelet sets for the whole machine: it sees copies.
SYSCTLS = ["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
           "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(what, condition, seconds=90, pause=0.1):
    """The first true value of the condition."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            value = condition()
        except OSError:
            # Not there yet.
            value = None
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause)


class Node:
    def __init__(self, kubelet, dormouse, containers):
        self.kubelet, self.dormouse, self.containers = kubelet, dormouse, containers
        text = subprocess.check_output([kubelet, "--version"], text=True)
        self.version = text.split()[-1]
        self.minor = int(re.search(r"v1\.(\d+)", text).group(1))
        self.scratch = tempfile.mkdtemp(prefix="kubelet-")
        os.chmod(self.scratch, 0o755)
        self.manifests = f"{self.scratch}/manifests"
        os.mkdir(self.manifests)
        self.port = free_port()
        self.processes = {}
        self.image = None
        self.write_files()

    # MARK: files

    def path(self, name):
        return f"{self.scratch}/{name}"

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), errors="replace") as file:
            return file.read()

    def write_files(self):
        self.write("containerd.toml", f"""
version = 2
root = "{self.scratch}/root"
state = "{self.scratch}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{self.scratch}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
""")
        configuration = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "staticPodPath": self.manifests, "cgroupDriver": "cgroupfs", "failSwapOn": False,
            "address": "127.0.0.1", "port": self.port, "readOnlyPort": 0, "healthzPort": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "makeIPTablesUtilChains": False,
            "fileCheckFrequency": "1s", "syncFrequency": "2s", "enforceNodeAllocatable": [],
            "evictionHard": {"memory.available": "1Mi"}, "oomScoreAdj": 0,
            "volumePluginDir": self.path("plugins")}
        if self.minor >= 31:
            configuration["failCgroupV1"] = False
        self.write("kubelet.json", json.dumps(configuration))
        self.write("dormouse.yaml", """policy: server
policy_overrides:
  pressure: { warning: never, urgent: never, critical: { available_below: 1% } }
""")
        self.write("pause.c", "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
        shutil.copy(f"{HERE}/server.py", self.path("server.py"))
        subprocess.check_call(["cc", "-static", "-o", "pause", "pause.c"], cwd=self.scratch)
        subprocess.check_call(["python3", "-B", f"{HERE}/images.py", IMAGE, PAUSE], cwd=self.scratch)

    # MARK: processes

    def spawn(self, name, command, environment=None):
        with open(self.path(f"{name}.log"), "a") as log:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=dict(os.environ, **(environment or {})))

    def end(self, name):
        process = self.processes.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def inside(self, command):
        return ["nsenter", "-t", str(self.processes["mounts"].pid), "-m"] + command

    def start(self):
        """The mounts are a namespace's own, without the empty tree of cgroup version 2."""
        copies = "".join(
            f"cat /proc/sys/{name} > sysctl-{number} && mount --bind sysctl-{number} /proc/sys/{name} && "
            for number, name in enumerate(SYSCTLS))
        self.spawn("mounts", [
            "unshare", "-m", "--propagation", "private", "sh", "-c",
            f"cd {self.scratch} && {copies} {{ umount /sys/fs/cgroup/unified 2>/dev/null; mount --make-rshared /; "
            "mkdir log; mount --bind log /var/log; touch held; exec sleep 100000; }"])
        eventually("a mount namespace", lambda: os.path.exists(self.path("held")))
        self.start_containerd()
        self.ctr("images", "import", self.path("images.tar"))
        self.start_kubelet()
        self.start_daemon()
        self.spawn("watch", [
            self.containers, "--containerd", self.path("containerd.sock"), "--socket",
            self.path("control.sock")])

    def start_daemon(self):
        self.spawn("daemon", [
            self.dormouse, "daemon", "--config", self.path("dormouse.yaml"), "--socket",
            self.path("control.sock"), "--state-directory", self.path("dormouse")],
            {"DORMOUSE_CGROUP": "/proc/nowhere", "DORMOUSE_LOOP_CHECK": "5s"})
        eventually("the daemon answers", lambda: self.ask("ps").returncode == 0)

    def start_containerd(self):
        self.spawn("containerd", self.inside(["containerd", "--config", self.path("containerd.toml")]))
        eventually("containerd answers", lambda: self.ctr("version", check=False).returncode == 0)

    def ctr(self, *arguments, check=True):
        return subprocess.run(
            self.inside(["ctr", "-a", self.path("containerd.sock"), "-n", "k8s.io", *arguments]),
            check=check, capture_output=True, text=True)

    def load(self, archive):
        """Imports an image; its name."""
        return self.ctr("images", "import", os.path.abspath(archive)).stdout.split()[1]

    def start_kubelet(self):
        endpoint = f"unix://{self.scratch}/containerd.sock"
        self.spawn("kubelet", self.inside(
            [self.kubelet, "--config", self.path("kubelet.json"), "--root-dir", self.path("kubelet"),
             "--cert-dir", self.path("pki"), "--hostname-override", NAME,
             "--container-runtime-endpoint", endpoint]
            + (["--container-runtime", "remote", "--image-service-endpoint", endpoint]
               if self.minor < 24 else [])))
        eventually("kubelet answers", lambda: self.get("/healthz") == "ok")

    def remove_all(self):
        for name in os.listdir(self.manifests):
            os.unlink(f"{self.manifests}/{name}")

    def stop(self):
        self.remove_all()
        try:
            if "kubelet" in self.processes:
                eventually("no pod is left", lambda: not self.ctr("tasks", "ls", "-q").stdout.strip(), 60)
        except AssertionError:
            for task in self.ctr("tasks", "ls", "-q").stdout.split():
                self.ctr("tasks", "rm", "-f", task, check=False)
        for name in ("watch", "daemon", "kubelet", "containerd"):
            self.end(name)
        if "mounts" in self.processes:
            self.processes["mounts"].kill()
            self.processes.pop("mounts").wait()
        for root, _, _ in os.walk("/sys/fs/cgroup", topdown=False):
            if "/kubepods" in root:
                try:
                    os.rmdir(root)
                except OSError:
                    # Another kubelet's.
                    pass
        shutil.rmtree(self.scratch, ignore_errors=True)

    # MARK: kubelet

    def get(self, path, method="GET"):
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", method=method)
        context = ssl._create_unverified_context()  # its certificate is its own
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return answer.read().decode()

    def add(self, name, port, annotations=None, **container):
        """A static pod with one container `web`."""
        pod = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
            "spec": {
                "hostNetwork": True, "terminationGracePeriodSeconds": 10,
                "volumes": [{"name": "usr", "hostPath": {"path": "/usr"}},
                            {"name": "test", "hostPath": {"path": self.scratch}}],
                "containers": [dict({
                    "name": "web", "image": IMAGE, "imagePullPolicy": "Never",
                    "command": ["/usr/bin/python3", "/test/server.py", str(port)],
                    "volumeMounts": [{"name": "usr", "mountPath": "/usr", "readOnly": True},
                                     {"name": "test", "mountPath": "/test", "readOnly": True}],
                }, **container)]}}
        self.write(f"{name}.json", json.dumps(pod))
        os.rename(self.path(f"{name}.json"), f"{self.manifests}/{name}.json")

    def add_agent(self, image):
        """The pod of Packaging/kubernetes/dormouse.yaml as a static one. What an API server would provide is replaced: its
        configuration, the name of its image, and the directories of the node."""
        with open(f"{HERE}/../../../../Packaging/kubernetes/dormouse.yaml") as text:
            template = next(item for item in yaml.safe_load_all(text) if item["kind"] == "DaemonSet")
        spec = template["spec"]["template"]["spec"]
        del spec["priorityClassName"]
        # There is no network plugin.
        spec["hostNetwork"] = True
        for container in spec["containers"]:
            container["image"] = image
        directories = {"configuration": "agent", "state": "agent-state", "run": "agent-run", "containerd": "."}
        for volume in spec["volumes"]:
            if volume["name"] in directories:
                name = volume["name"]
                kind = volume.get("hostPath", {}).get("type", "Directory")
                volume.clear()
                volume.update(name=name, hostPath={"path": os.path.normpath(self.path(directories[name])), "type": kind})
        os.mkdir(self.path("agent"))
        shutil.copy(self.path("dormouse.yaml"), self.path("agent/dormouse.yaml"))
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent", "namespace": "default"}, "spec": spec}
        self.write("agent.json", json.dumps(pod))
        os.rename(self.path("agent.json"), f"{self.manifests}/agent.json")

    def remove(self, name):
        os.unlink(f"{self.manifests}/{name}.json")

    def status(self, name, container="web"):
        """Of the pod's container; None: there is no such pod."""
        for pod in json.loads(self.get("/pods"))["items"] or []:
            if pod["metadata"]["name"] == f"{name}-{NAME}":
                for status in pod["status"].get("containerStatuses") or []:
                    if status["name"] == container:
                        return status
        return None

    def execute(self, name, command, container="web"):
        return self.get(f"/run/default/{name}-{NAME}/{container}?cmd=" + urllib.parse.quote(command), "POST")

    def logs(self, name, container="web"):
        return self.get(f"/containerLogs/default/{name}-{NAME}/{container}")

    def charge(self, name):
        """What the kernel charges the pod's container for, in bytes; None: nothing counts that here."""
        with open(f"/proc/{self.worker(name)['pid']}/cgroup") as groups:
            for line in groups:
                _, controllers, group = line.rstrip().split(":", 2)
                for file in ((f"/sys/fs/cgroup/memory{group}/memory.usage_in_bytes",) if controllers == "memory"
                             else (f"/sys/fs/cgroup{group}/memory.current",)):
                    if os.path.exists(file):
                        with open(file) as value:
                            return int(value.read())
        return None

    # MARK: Dormouse

    def ask(self, *arguments):
        return subprocess.run([self.dormouse, *arguments, "--socket", self.path("control.sock")],
                              capture_output=True, text=True, timeout=120)

    def workers(self):
        return {worker["name"]: worker for worker in json.loads(self.ask("ps", "--json").stdout)["workers"]}

    def worker(self, name):
        return self.workers().get(f"default.{name}-{NAME}.web")

    def state(self, name):
        worker = self.worker(name)
        return worker and worker["state"]

    def hibernate(self, name):
        eventually(
            f"{name} hibernates", lambda: self.ask("hibernate", f"default.{name}-{NAME}.web").returncode == 0
            and self.state(name) == "hibernated")
