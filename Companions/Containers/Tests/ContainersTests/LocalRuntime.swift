import Foundation
import Testing

/// The runtimes that the tests can start.
enum RuntimeKind: String, CaseIterable, Sendable, CustomStringConvertible {
  case docker, podman

  var description: String { rawValue }

  /// The runtimes that can start a container here.
  static let usable = allCases.filter { obstacles[$0] == nil }

  /// The reasons why other runtimes can't.
  static let obstacles: [RuntimeKind: String] = {
    var obstacles: [RuntimeKind: String] = [:]
    for kind in allCases { obstacles[kind] = kind.obstacle() }
    return obstacles
  }()

  private func obstacle() -> String? {
    if geteuid() != 0 { return "only root starts containers here" }
    let programs = self == .docker ? ["/usr/sbin/dockerd", "/usr/bin/docker"] : ["/usr/bin/podman"]
    for program in programs where !FileManager.default.isExecutableFile(atPath: program) {
      return "\(program) isn't installed"
    }
    guard TestedPrograms.hasDormouse else { return "no dormouse: build the root package" }
    do {
      let runtime = try LocalRuntime(self)
      try runtime.start("trial", ["-p", "127.0.0.1::8000"], ["/bin/sleep", "1"])
      return nil
    } catch { return "\(self) can't start a container here: \(error)" }
  }
}

/// Docker or Podman with a store of its own, its service, and a holder of the mounts that it makes.
/// All of it ends with this object. Images aren't fetched: one without files of its own is made
/// here, and the containers see this machine's /usr.
final class LocalRuntime {
  let kind: RuntimeKind
  let scratch: ScratchDirectory
  var socket: String { "\(scratch.path)/\(kind).sock" }
  private let holder: MountHolder
  private var service: pid_t?

  static let image = "localhost/dormouse-test"

  init(_ kind: RuntimeKind) throws {
    self.kind = kind
    scratch = try ScratchDirectory()
    // Containers that run as another user must be able to read the directory.
    chmod(scratch.path, 0o755)
    holder = try MountHolder(scratch)
    // A process without CAP_SYS_RESOURCE can't set limits as high as the default ones.
    try write(
      "containers.conf",
      """
      [containers]
      default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]
      [engine]
      cgroup_manager = "cgroupfs"
      events_logger = "file"

      """)
    try startService()
    try makeImage()
  }

  private func write(_ name: String, _ text: String) throws {
    try Data(text.utf8).write(to: URL(filePath: "\(scratch.path)/\(name)"))
  }

  private func makeImage() throws {
    try write(
      "make.sh",
      """
      set -e
      mkdir -p \(scratch.path)/root && cd \(scratch.path)/root
      mkdir -p etc tmp run proc sys dev usr data var/lib var/log/nginx
      chmod 1777 tmp
      for name in bin sbin lib lib64; do ln -s usr/$name $name; done
      printf 'root:x:0:0::/root:/bin/sh\\nwww-data:x:33:33::/:/bin/sh\\n' > etc/passwd
      printf 'root:x:0:\\nwww-data:x:33:\\n' > etc/group
      tar -c . > \(scratch.path)/image.tar

      """)
    let made = try TestedPrograms.run("/bin/sh", ["\(scratch.path)/make.sh"])
    if made.code != 0 { throw Failure("no image: \(made.output)") }
    try command("import", "\(scratch.path)/image.tar", Self.image)
  }

  func startService() throws {
    let service =
      kind == .podman
      ? podman + ["system", "service", "--time=0", "unix://\(socket)"]
      : [
        "dockerd", "-H", "unix://\(socket)", "--data-root", "\(scratch.path)/store",
        "--exec-root", "\(scratch.path)/run", "--pidfile", "\(scratch.path)/docker.pid",
        "--storage-driver", "vfs", "--exec-opt", "native.cgroupdriver=cgroupfs",
        "--default-ulimit", "nofile=1024:4096", "--default-ulimit", "nproc=4096:4096",
        // The runtime doesn't change this machine's packet filters; its proxy carries the published
        // ports.
        "--iptables=false", "--ip6tables=false", "--ip-masq=false",
        // Containers outlive the runtime.
        "--live-restore",
      ]
    self.service = try ChildProcess.spawn(inside(service), output: "\(scratch.path)/service.log")
    let deadline = ContinuousClock.now + .seconds(60)
    while try !FileManager.default.fileExists(atPath: socket) || tryCommand(["version"]).code != 0 {
      if ContinuousClock.now > deadline { throw Failure("\(kind) doesn't listen: \(serviceLog)") }
      usleep(50_000)
    }
  }

  private var serviceLog: String {
    // The log is only for a message.
    (try? String(contentsOfFile: "\(scratch.path)/service.log", encoding: .utf8)) ?? ""
  }

  func stopService() {
    guard let service else { return }
    kill(service, SIGTERM)
    // The process is this process's child.
    _ = try? ChildProcess.wait(for: service)
    self.service = nil
    unlink(socket)
  }

  private func inside(_ command: [String]) -> [String] {
    holder.inside(["env", "CONTAINERS_CONF=\(scratch.path)/containers.conf"] + command)
  }

  private var podman: [String] {
    [
      "podman", "--root", "\(scratch.path)/store", "--runroot", "\(scratch.path)/run",
      "--storage-driver", "vfs",
    ]
  }

  /// The runtime's own command.
  private var client: [String] {
    kind == .podman ? podman : ["docker", "-H", "unix://\(socket)"]
  }

  func tryCommand(_ arguments: [String]) throws -> TestedPrograms.Outcome {
    try run(inside(client + arguments))
  }

  /// Runs a script of sh in which `"$@"` is the runtime's own command.
  func shell(_ script: String) throws -> TestedPrograms.Outcome {
    try run(inside(["sh", "-c", script, "sh"] + client))
  }

  private func run(_ command: [String]) throws -> TestedPrograms.Outcome {
    try ChildProcess.run(command, output: "\(scratch.path)/output")
  }

  @discardableResult
  func command(_ arguments: String...) throws -> String {
    let outcome = try tryCommand(arguments)
    if outcome.code != 0 {
      throw Failure("\(kind) \(arguments.joined(separator: " ")): \(outcome.output)")
    }
    return outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Starts a container with the policy `server`. It sees this machine's programs, and the
  /// directory of test programs.
  func start(_ name: String, _ options: [String] = [], _ command: [String]) throws {
    let outcome = try tryCommand(
      [
        "run", "-d", "--name", name, "--label", "dormouse.policy=server",
        "--label", "dormouse.background.suspend_after=never",
        "--label", "dormouse.hibernate.after=never", "--label", "dormouse.hibernate.cooldown=0s",
        "-v", "/usr:/usr:ro",
        "-v", "\(scratch.path):/test",
      ] + options + [Self.image] + command)
    if outcome.code != 0 { throw Failure("\(kind) run \(name): \(outcome.output)") }
  }

  func pid(of name: String) throws -> Int32 {
    Int32(try command("inspect", "-f", "{{.State.Pid}}", name)) ?? 0
  }

  /// The memory that the kernel charges to the container's cgroup, in bytes; nil if it isn't
  /// counted here.
  func charge(of name: String) throws -> Int64? {
    let text = try String(contentsOfFile: "/proc/\(try pid(of: name))/cgroup", encoding: .utf8)
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { continue }
      let file =
        parts[1] == "memory"
        ? "/sys/fs/cgroup/memory\(parts[2])/memory.usage_in_bytes"
        : "/sys/fs/cgroup\(parts[2])/memory.current"
      // Only one of the two files exists.
      if let value = try? String(contentsOfFile: file, encoding: .utf8) {
        return Int64(value.trimmingCharacters(in: .whitespacesAndNewlines))
      }
    }
    return nil
  }

  deinit {
    // What remains is in a directory that is removed, or ends with the holder.
    _ = try? shell(#"ids=$("$@" ps -aq); [ -z "$ids" ] || { "$@" kill $ids; "$@" rm -f $ids; }"#)
    stopService()
  }
}
