import CRI
import Foundation

/// containerd with a store of its own, and pods that a test makes through CRI, as kubelet does.
/// They are in the network of this machine, so that no network plugin is needed. All of it ends
/// with this object.
final class LocalContainerd {
  let scratch: ScratchDirectory
  var socket: String { "\(scratch.path)/containerd.sock" }
  private let holder: MountHolder
  private var service: pid_t?
  static let image = "localhost/dormouse-test:1"
  private static let pause = "localhost/dormouse-pause:1"

  init() throws {
    scratch = try ScratchDirectory()
    chmod(scratch.path, 0o755)
    holder = try MountHolder(scratch)
    try write(
      "containerd.toml",
      """
      version = 2
      root = "\(scratch.path)/root"
      state = "\(scratch.path)/state"
      disabled_plugins = ["io.containerd.internal.v1.opt"]
      [grpc]
        address = "\(socket)"
      [plugins."io.containerd.grpc.v1.cri"]
        restrict_oom_score_adj = true
        sandbox_image = "\(Self.pause)"
        [plugins."io.containerd.grpc.v1.cri".containerd]
          snapshotter = "native"

      """)
    try startService()
    try makeImages()
  }

  private func write(_ name: String, _ text: String) throws {
    try Data(text.utf8).write(to: URL(filePath: "\(scratch.path)/\(name)"))
  }

  func startService() throws {
    service = try ChildProcess.spawn(
      holder.inside(["containerd", "--config", "\(scratch.path)/containerd.toml"]),
      output: "\(scratch.path)/service.log")
    let deadline = ContinuousClock.now + .seconds(60)
    while try !FileManager.default.fileExists(atPath: socket) || ctr(["version"]).code != 0 {
      if ContinuousClock.now > deadline {
        // The log is only for a message.
        let log = try? String(contentsOfFile: "\(scratch.path)/service.log", encoding: .utf8)
        throw Failure("containerd doesn't listen: \(log ?? "")")
      }
      usleep(50_000)
    }
  }

  func stopService() {
    guard let service else { return }
    kill(service, SIGTERM)
    // The process is this process's child.
    _ = try? ChildProcess.wait(for: service)
    self.service = nil
    unlink(socket)
  }

  private func ctr(_ arguments: [String]) throws -> TestedPrograms.Outcome {
    try ChildProcess.run(
      holder.inside(["ctr", "-a", socket, "-n", "k8s.io"] + arguments),
      output: "\(scratch.path)/output")
  }

  /// Creates images without a registry: a pause program, and directories into which this machine's
  /// programs are mounted.
  private func makeImages() throws {
    try write("pause.c", "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    try write("images.py", Self.imageMaker)
    let made = try ChildProcess.run(
      [
        "/bin/sh", "-c",
        "cd \(scratch.path) && cc -static -o pause pause.c && python3 images.py \(Self.image) "
          + "\(Self.pause)",
      ], output: "\(scratch.path)/output")
    if made.code != 0 { throw Failure("no images: \(made.output)") }
    let imported = try ctr(["images", "import", "\(scratch.path)/images.tar"])
    if imported.code != 0 { throw Failure("no images: \(imported.output)") }
  }

  /// Writes an archive of Docker's kind with two images.
  static let imageMaker = """
    import hashlib, io, json, sys, tarfile
    def tar(entries):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name, content in entries:
                info = tarfile.TarInfo(name)
                if content is None: info.type, info.mode = tarfile.DIRTYPE, 0o755
                elif isinstance(content, str): info.type, info.linkname = tarfile.SYMTYPE, content
                else: info.size, info.mode = len(content), 0o755
                archive.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
        return out.getvalue()
    names = "etc tmp run proc sys dev usr data var".split()
    links = [(name, "usr/" + name) for name in "bin sbin lib lib64".split()]
    layers = {
        sys.argv[1]: tar([(name, None) for name in names] + links + [("etc/passwd", \
        b"root:x:0:0::/root:/bin/sh\\n")]),
        sys.argv[2]: tar([("pause", open("pause", "rb").read())]),
    }
    entries, manifest = [], []
    for tag, layer in layers.items():
        digest = hashlib.sha256(layer).hexdigest()
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Entrypoint": \
        ["/pause"]},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}).encode()
        name = hashlib.sha256(config).hexdigest() + ".json"
        entries += [(name, config), (digest + ".tar", layer)]
        manifest.append({"Config": name, "RepoTags": [tag], "Layers": [digest + ".tar"]})
    open("images.tar", "wb").write(tar(entries + [("manifest.json", \
    json.dumps(manifest).encode())]))

    """

  deinit {
    // What remains is in a directory that is removed, or ends with the holder.
    _ = try? ctr(["tasks", "ls", "-q"]).output.split(separator: "\n").forEach {
      _ = try ctr(["tasks", "kill", "-s", "SIGKILL", String($0)])
      _ = try ctr(["tasks", "rm", "-f", String($0)])
    }
    stopService()
  }

  /// The reason why no pod can be started here; nil if one can.
  static let obstacle: String? = {
    if geteuid() != 0 { return "only root starts containers here" }
    for program in ["/usr/bin/containerd", "/usr/bin/ctr", "/usr/sbin/runc"]
    where !FileManager.default.isExecutableFile(atPath: program) {
      return "\(program) isn't installed"
    }
    guard TestedPrograms.hasDormouse else { return "no dormouse: build the root package" }
    do {
      _ = try LocalContainerd()
      return nil
    } catch { return "containerd doesn't run here: \(error)" }
  }()
}
