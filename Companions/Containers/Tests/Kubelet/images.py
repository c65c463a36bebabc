"""images.py TEST PAUSE: writes images.tar, an archive of Docker's kind with two images, without a registry. The first
has directories into which this machine's programs are mounted, the second the program `pause` of this directory."""
import hashlib
import io
import json
import sys
import tarfile


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


def main(test, pause):
    directories = [(name, None) for name in "etc tmp run proc sys dev usr data var".split()]
    links = [(name, "usr/" + name) for name in "bin sbin lib lib64".split()]
    with open("pause", "rb") as program:
        layers = {
            test: tar(directories + links + [("etc/passwd", b"root:x:0:0::/root:/bin/sh\n")]),
            pause: tar([("pause", program.read())]),
        }
    entries, manifest = [], []
    for tag, layer in layers.items():
        digest = hashlib.sha256(layer).hexdigest()
        config = json.dumps({
            "architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/pause"]},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}).encode()
        name = hashlib.sha256(config).hexdigest() + ".json"
        entries += [(name, config), (digest + ".tar", layer)]
        manifest.append({"Config": name, "RepoTags": [tag], "Layers": [digest + ".tar"]})
    with open("images.tar", "wb") as archive:
        archive.write(tar(entries + [("manifest.json", json.dumps(manifest).encode())]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
