"""A cluster of Kubernetes with one node on this machine: etcd, the API server, its controllers, scheduler and proxy, a
kubelet and containerd, each from a directory of executables. All of it has a network and mounts of its own."""
import json
import os
import shutil
import signal
import subprocess
import tempfile

from cluster_files import ADDRESS, NODE, ClusterFiles
from control import request
from node import SYSCTLS, eventually

PODS, SERVICES = "10.244.0.0/16", "10.96.0.0/16"
# Of the node, where the manifests expect them; this cluster's own are mounted over them.
DIRECTORIES = ["/run", "/var/lib", "/var/log"]


class Cluster(ClusterFiles):
    def __init__(self, binaries, scratch=None):
        self.processes = {}
        super().__init__(binaries, scratch or tempfile.mkdtemp(prefix="cluster-"))

    # MARK: processes

    def spawn(self, name, command):
        with open(self.path(f"{name}.log"), "a") as log:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=dict(os.environ, PATH=f"{self.binaries}:{os.environ['PATH']}:/usr/sbin:/sbin"))

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

    def inside(self, *command):
        return ["nsenter", "-t", str(self.processes["space"].pid), "-m", "-n", *command]

    def run_inside(self, *command, check=True, **options):
        return subprocess.run(self.inside(*command), check=check, capture_output=True, text=True, **options)

    def start(self):
        self.start_space()
        self.start_containerd()
        self.ctr("images", "import", self.path("images.tar"))
        self.start_control_plane()
        self.start_kubelet()
        self.spawn("proxy", self.inside(
            self.binary("kube-proxy"), "--kubeconfig", self.path("proxy.kubeconfig"), "--proxy-mode", "nftables",
            "--cluster-cidr", PODS, "--hostname-override", NODE, "--conntrack-max-per-core", "0",
            "--conntrack-tcp-timeout-established", "0", "--conntrack-tcp-timeout-close-wait", "0",
            "--oom-score-adj", "0"))
        eventually("the node is ready", self.is_ready, pause=1)
        eventually("pods get accounts", lambda: self.kubectl(
            "get", "serviceaccount", "default", check=False).returncode == 0)

    def start_space(self):
        """Namespaces: without the empty tree of cgroup version 2, with directories of the cluster's own."""
        mounts = "".join(f"mkdir -p mounted{path}; mount --bind mounted{path} {path}; " for path in DIRECTORIES)
        self.spawn("space", [
            "unshare", "-m", "-n", "--propagation", "private", "sh", "-ec",
            f"cd {self.scratch}; {mounts} umount /sys/fs/cgroup/unified 2>/dev/null || true; "
            "mount --make-rshared /; ip link set lo up; ip link add node0 type bridge; "
            f"ip address add {ADDRESS}/24 dev node0; ip link set node0 up; ip route add default dev node0; "
            "echo 1 > /proc/sys/net/ipv4/ip_forward; touch held; exec sleep 1000000"])
        eventually("namespaces", lambda: os.path.exists(self.path("held")), 20)

    def start_containerd(self):
        self.spawn("containerd", self.inside(self.binary("containerd"), "--config", self.path("containerd.toml")))
        eventually("containerd answers", lambda: self.ctr("version", check=False).returncode == 0)

    def start_control_plane(self):
        etcd = "http://127.0.0.1:2379"
        self.spawn("etcd", self.inside(
            self.binary("etcd"), "--data-dir", self.path("etcd"), "--listen-client-urls", etcd,
            "--advertise-client-urls", etcd, "--listen-peer-urls", "http://127.0.0.1:2380", "--unsafe-no-fsync"))
        self.spawn("api", self.inside(
            self.binary("kube-apiserver"), "--etcd-servers", etcd, "--advertise-address", ADDRESS,
            "--tls-cert-file", self.path("api.crt"), "--tls-private-key-file", self.path("api.key"),
            "--token-auth-file", self.path("tokens.csv"), "--authorization-mode", "Node,RBAC",
            "--enable-admission-plugins", "NodeRestriction", "--service-cluster-ip-range", SERVICES,
            "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-signing-key-file",
            self.path("accounts.key"), "--service-account-key-file", self.path("accounts.key"), "--allow-privileged",
            "--kubelet-preferred-address-types", "InternalIP"))
        eventually("the API server is ready",
                   lambda: self.kubectl("get", "--raw", "/readyz", check=False).stdout == "ok", 180)
        self.spawn("controllers", self.inside(
            self.binary("kube-controller-manager"), "--kubeconfig", self.path("controllers.kubeconfig"),
            "--service-account-private-key-file", self.path("accounts.key"), "--root-ca-file", self.path("ca.crt"),
            "--use-service-account-credentials", "--leader-elect=false"))
        self.spawn("scheduler", self.inside(
            self.binary("kube-scheduler"), "--kubeconfig", self.path("scheduler.kubeconfig"), "--leader-elect=false"))

    def start_kubelet(self):
        """It sees copies of what it sets for the whole machine. Not so the containers: over such mounts the kernel lets no user
        namespace mount its own /proc."""
        copies = " && ".join(
            f"cat /proc/sys/{name} > sysctl-{number} && mount --bind sysctl-{number} /proc/sys/{name}"
            for number, name in enumerate(SYSCTLS))
        self.spawn("kubelet", self.inside(
            "unshare", "-m", "--propagation", "unchanged", "sh", "-ec",
            f'cd {self.scratch}; mount --make-rprivate /proc; {copies}; exec "$0" "$@"', self.binary("kubelet"), "--config", self.path("kubelet.json"), "--kubeconfig",
            self.path("kubelet.kubeconfig"), "--hostname-override", NODE, "--node-ip", ADDRESS))

    def stop(self):
        """Ends pods, then programs; what is mounted ends with its namespace."""
        for name in ("scheduler", "controllers", "kubelet", "proxy"):
            self.end(name)
        if "containerd" in self.processes:
            for task in self.ctr("tasks", "ls", "-q", check=False).stdout.split():
                self.ctr("tasks", "rm", "-f", task, check=False)
                self.ctr("containers", "rm", task, check=False)
        for name in ("containerd", "api", "etcd"):
            self.end(name)
        # What containers left behind, such as their shims, is in the mount namespace.
        if "space" in self.processes and self.processes["space"].poll() is None:
            space = os.readlink(f"/proc/{self.processes['space'].pid}/ns/mnt")
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if os.readlink(f"/proc/{pid}/ns/mnt") == space:
                        os.kill(int(pid), signal.SIGKILL)
                except OSError:
                    pass  # It has ended.
            self.processes.pop("space").wait()
        for root, _, _ in os.walk("/sys/fs/cgroup", topdown=False):
            if "/kubepods" in root:
                try:
                    os.rmdir(root)
                except OSError:
                    pass  # Another kubelet's.
        shutil.rmtree(self.scratch, ignore_errors=True)

    # MARK: clients

    def ctr(self, *arguments, check=True):
        return self.run_inside(self.binary("ctr"), "-n", "k8s.io", *arguments, check=check)

    def kubectl(self, *arguments, check=True, **options):
        return self.run_inside(
            self.binary("kubectl"), "--kubeconfig", self.path("admin.kubeconfig"), *arguments, check=check, **options)

    def is_ready(self):
        return "True" in self.kubectl(
            "get", "node", NODE, "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}", check=False).stdout

    def apply(self, *objects):
        self.kubectl("apply", "--validate=false", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def get(self, kind, name, namespace="default"):
        """The object; None: there is none."""
        found = self.kubectl("get", kind, name, "-n", namespace, "-o", "json", check=False)
        return json.loads(found.stdout) if found.returncode == 0 else None

    def pod_of(self, app):
        """The one pod with this label that isn't about to end."""
        pods = [item for item in json.loads(self.kubectl("get", "pods", "-l", f"app={app}", "-o", "json").stdout)["items"]
                if "deletionTimestamp" not in item["metadata"]]
        return pods[0] if len(pods) == 1 else None

    def status(self, name, container="web"):
        """Of the pod's container; None: there is no such pod."""
        statuses = (self.get("pod", name) or {}).get("status", {})
        for status in statuses.get("containerStatuses", []) + statuses.get("initContainerStatuses", []):
            if status["name"] == container:
                return status
        return None

    def charge(self, pid):
        """What the kernel charges the process's container for, in bytes; None: nothing counts that here."""
        with open(f"/proc/{pid}/cgroup") as groups:
            for line in groups:
                _, controllers, group = line.rstrip().split(":", 2)
                for file in ((f"/sys/fs/cgroup/memory{group}/memory.usage_in_bytes",) if controllers == "memory"
                             else (f"/sys/fs/cgroup{group}/memory.current",)):
                    if os.path.exists(file):
                        with open(file) as value:
                            return int(value.read())
        return None

    # MARK: Dormouse

    def dormouse(self, *words):
        """A request to the daemon in the DaemonSet's pod."""
        return self.kubectl("exec", "-n", "dormouse", "ds/dormouse", "-c", "daemon", "--", "/usr/bin/dormouse", *words,
                            "--socket", "/run/dormouse/control.sock", check=False)

    def request(self, verb, worker=None):
        return request(self.path("mounted/run/dormouse/control.sock"), verb, worker)

    def workers(self):
        try:
            return {worker["name"]: worker for worker in self.request("ps").get("workers", [])}
        except OSError:
            return {}  # There is no daemon.

    def worker(self, name, container="web"):
        return self.workers().get(f"default.{name}.{container}")

    def state(self, name, container="web"):
        return (self.worker(name, container) or {}).get("state")

    def hibernate(self, name, container="web"):
        eventually(f"{name} hibernates", lambda: self.request("hibernate", f"default.{name}.{container}")["result"] == "done"
                   and self.state(name, container) == "hibernated")
