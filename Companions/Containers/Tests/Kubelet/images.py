"""images.py TEST PAUSE [NGINX PROGRAM]: writes images.tar, an archive of Docker's kind, without a registry. The first image
has directories into which this machine's programs are mounted, the second the program `pause` of this directory, the
third this machine's nginx with its libraries."""
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile

NGINX = b"""worker_processes 2;
events {}
http { access_log off; server { listen 80; location / { return 200 "nginx\\n"; } } }
"""


def tar(entries):
    """A name with None is a directory, with a text a link to it, with bytes a program."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
            else:
                info.size, info.mode = len(content), 0o755
            archive.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


def content(path):
    with open(path, "rb") as file:
        return file.read()


def with_libraries(programs):
    """Entries of programs, and of what the loader finds for them. From `{"usr/sbin/nginx": "/where/it/is"}`."""
    found = dict(programs)
    for program in programs.values():
        for path in re.findall(r"(?:=> |^\s+)(/\S+)", subprocess.check_output(["ldd", program], text=True), re.MULTILINE):
            found[path.lstrip("/")] = path
    return [(name, content(path)) for name, path in found.items()]


def nginx(program):
    directories = "etc etc/nginx tmp run proc sys dev var var/run var/log var/log/nginx var/lib var/lib/nginx".split()
    return tar([(name, None) for name in directories]
               + with_libraries({"usr/sbin/nginx": program, "bin/test": "/usr/bin/test", "bin/sh": "/bin/dash"})
               + [("etc/passwd", b"root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"),
                  ("etc/group", b"root:x:0:\nnogroup:x:65534:\n"), ("etc/nginx/nginx.conf", NGINX)])


def main(test, pause, nginx_name=None, nginx_program=None):
    directories = [(name, None) for name in "etc tmp run proc sys dev usr data var".split()]
    links = [(name, "usr/" + name) for name in "bin sbin lib lib64".split()]
    commands = {pause: ["/pause"], nginx_name: ["/usr/sbin/nginx", "-g", "daemon off;"]}
    layers = {
        test: tar(directories + links + [("etc/passwd", b"root:x:0:0::/root:/bin/sh\n")]),
        pause: tar([("pause", content("pause"))]),
    }
    if nginx_program:
        layers[nginx_name] = nginx(nginx_program)
    entries, manifest = [], []
    for tag, layer in layers.items():
        digest = hashlib.sha256(layer).hexdigest()
        config = json.dumps({
            "architecture": "amd64", "os": "linux", "config": {"Entrypoint": commands.get(tag, [])},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}).encode()
        name = hashlib.sha256(config).hexdigest() + ".json"
        entries += [(name, config), (digest + ".tar", layer)]
        manifest.append({"Config": name, "RepoTags": [tag], "Layers": [digest + ".tar"]})
    with open("images.tar", "wb") as archive:
        archive.write(tar(entries + [("manifest.json", json.dumps(manifest).encode())]))


if __name__ == "__main__":
    main(*sys.argv[1:])
