"""What the programs of the tests' cluster read: configurations, certificates, tokens, and images."""
import json
import os
import secrets
import shutil
import subprocess

from node import IMAGE, PAUSE

HERE = os.path.dirname(os.path.abspath(__file__))
# The image that Packaging/kubernetes/example.yaml names, made of this machine's nginx.
NGINX = "docker.io/library/nginx:1.27"
NODE, ADDRESS, API_SERVICE = "node", "10.200.0.1", "10.96.0.1"
USERS = {"admin": ("admin", "system:masters"), "kubelet": (f"system:node:{NODE}", "system:nodes"),
         "controllers": ("system:kube-controller-manager", ""), "scheduler": ("system:kube-scheduler", ""),
         "proxy": ("system:kube-proxy", "")}


class ClusterFiles:
    def __init__(self, binaries, scratch):
        self.binaries, self.scratch = os.path.abspath(binaries), scratch
        os.makedirs(scratch, exist_ok=True)
        os.chmod(scratch, 0o755)
        program = shutil.which("nginx", path=f"{self.binaries}:/usr/sbin:/usr/bin")
        self.nginx = [NGINX, program] if program else []
        self.tokens = {name: secrets.token_hex(16) for name in USERS}
        self.write_files()

    def path(self, name):
        return f"{self.scratch}/{name}"

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), errors="replace") as file:
            return file.read()

    def binary(self, name):
        return f"{self.binaries}/{name}"

    def write_files(self):
        self.write_certificates()
        self.write("tokens.csv", "".join(
            f'{self.tokens[name]},{user},{name},"{group}"\n' for name, (user, group) in USERS.items()))
        for name in USERS:
            self.write(f"{name}.kubeconfig", json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "test",
                "clusters": [{"name": "test", "cluster": {
                    "server": "https://127.0.0.1:6443", "certificate-authority": self.path("ca.crt")}}],
                "users": [{"name": name, "user": {"token": self.tokens[name]}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}]}))
        cni = next(path for path in (self.binary("cni"), "/usr/lib/cni", "/opt/cni/bin") if os.path.isdir(path))
        self.write("containerd.toml", f"""
version = 3
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{PAUSE}"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{cni}"]
    conf_dir = "{self.path("cni")}"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = "{self.binary("runc")}"
""")
        os.makedirs(self.path("cni"), exist_ok=True)
        self.write("cni/10-bridge.conflist", json.dumps({
            "cniVersion": "1.0.0", "name": "pods", "plugins": [
                {"type": "bridge", "bridge": "pods0", "isGateway": True, "hairpinMode": True,
                 "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]],
                          "routes": [{"dst": "0.0.0.0/0"}]}},
                {"type": "portmap", "capabilities": {"portMappings": True}}]}))
        self.write("resolv.conf", "nameserver 127.0.0.1\n")
        self.write("kubelet.json", json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": False,
            "cgroupDriver": "cgroupfs", "failSwapOn": False, "address": "0.0.0.0", "oomScoreAdj": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "makeIPTablesUtilChains": False,
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "resolvConf": self.path("resolv.conf"), "syncFrequency": "10s", "enforceNodeAllocatable": [],
            "evictionHard": {"memory.available": "1Mi"}, "volumePluginDir": self.path("plugins")}))
        self.write("pause.c", "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
        os.makedirs(self.path("programs"), exist_ok=True)
        for program in ("server.py", "checked.py", "health.py"):
            shutil.copy(f"{HERE}/{program}", self.path("programs"))
        subprocess.check_call(["cc", "-static", "-o", "pause", "pause.c"], cwd=self.scratch)
        subprocess.check_call(["/usr/bin/python3", "-B", f"{HERE}/images.py", IMAGE, PAUSE, *self.nginx], cwd=self.scratch)

    def write_certificates(self):
        """An authority, and the API server's certificate of it."""
        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], cwd=self.scratch, check=True, capture_output=True)

        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-days", "30",
                "-subj", "/CN=test")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "api.key", "-out", "api.csr", "-subj", "/CN=api")
        self.write("api.ext", f"subjectAltName=IP:127.0.0.1,IP:{ADDRESS},IP:{API_SERVICE},DNS:kubernetes.default.svc\n")
        openssl("x509", "-req", "-in", "api.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
                "-extfile", "api.ext", "-out", "api.crt")
        openssl("genrsa", "-out", "accounts.key", "2048")
