import Foundation
import Testing

/// Podman with a store of its own, its service, and a holder of the mounts and network namespaces that it makes. All
/// of it ends with this object. Images aren't fetched: one without files of its own is made here, and the containers
/// see this machine's /usr.
final class PodmanRuntime {
  let scratch: ScratchDirectory
  var socket: String { "\(scratch.path)/podman.sock" }
  private let holder: pid_t
  private var service: pid_t?

  static let image = "localhost/dormouse-test"

  init() throws {
    scratch = try ScratchDirectory()
    // For containers that run as another user.
    chmod(scratch.path, 0o755)
    // In a mount namespace: crun refuses the two versions of cgroups side by side, so version 2 is hidden there.
    holder = try Self.spawned(
      [
        "/usr/bin/unshare", "-m", "--propagation", "private", "sh", "-c",
        "umount /sys/fs/cgroup/unified 2>/dev/null; touch \(scratch.path)/held; exec sleep 100000",
      ], output: "/dev/null")
    let deadline = ContinuousClock.now + .seconds(30)
    while !FileManager.default.fileExists(atPath: "\(scratch.path)/held") {
      if ContinuousClock.now > deadline { throw Failure("no mount namespace") }
      usleep(20_000)
    }
    // The default limits are more than a process without CAP_SYS_RESOURCE may set.
    try write(
      "containers.conf",
      """
      [containers]
      default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]
      [engine]
      cgroup_manager = "cgroupfs"
      events_logger = "file"

      """)
    try makeImage()
    try startService()
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
      for name in bin sbin lib lib64; do ln -s usr/$name $name; done
      printf 'root:x:0:0::/root:/bin/sh\\nwww-data:x:33:33::/:/bin/sh\\n' > etc/passwd
      printf 'root:x:0:\\nwww-data:x:33:\\n' > etc/group
      tar -c . > \(scratch.path)/image.tar

      """)
    let made = try TestedPrograms.run("/bin/sh", ["\(scratch.path)/make.sh"])
    if made.code != 0 { throw Failure("no image: \(made.output)") }
    try podman("import", "\(scratch.path)/image.tar", Self.image)
  }

  func startService() throws {
    service = try Self.spawned(
      ["/usr/bin/nsenter"] + inside(["system", "service", "--time=0", "unix://\(socket)"]),
      output: "/dev/null")
    let deadline = ContinuousClock.now + .seconds(30)
    while !FileManager.default.fileExists(atPath: socket) {
      if ContinuousClock.now > deadline { throw Failure("podman's service doesn't listen") }
      usleep(20_000)
    }
  }

  func stopService() {
    guard let service else { return }
    kill(service, SIGTERM)
    // It is this process's child.
    _ = try? Self.wait(for: service)
    self.service = nil
    unlink(socket)
  }

  private func inside(_ arguments: [String]) -> [String] {
    [
      "-t", "\(holder)", "-m", "env",
      "CONTAINERS_CONF=\(scratch.path)/containers.conf", "podman",
      "--root", "\(scratch.path)/store", "--runroot", "\(scratch.path)/run", "--storage-driver",
      "vfs",
    ] + arguments
  }

  func tryPodman(_ arguments: [String]) throws -> TestedPrograms.Outcome {
    let file = "\(scratch.path)/output"
    let code = try Self.wait(
      for: Self.spawned(["/usr/bin/nsenter"] + inside(arguments), output: file))
    return TestedPrograms.Outcome(
      code: code, output: try String(contentsOfFile: file, encoding: .utf8))
  }

  /// Not by Foundation's `Process`: it waits until all that have inherited a descriptor of it have ended, and a
  /// container's monitor has.
  private static func spawned(_ command: [String], output: String) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    // Without descriptors that belong to other processes of the tests.
    let closing = "import os, sys; os.closerange(3, 4096); os.execv(sys.argv[1], sys.argv[1:])"
    let command = ["/usr/bin/python3", "-c", closing] + command
    var arguments = command.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var pid: pid_t = 0
    let failure = posix_spawn(&pid, command[0], &actions, nil, &arguments, environ)
    if failure != 0 { throw Failure("\(command[0]): errno \(failure)") }
    return pid
  }

  private static func wait(for pid: pid_t) throws -> Int32 {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 {
      if errno != EINTR { throw Failure("waitpid: errno \(errno)") }
    }
    return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
  }

  @discardableResult
  func podman(_ arguments: String...) throws -> String {
    let outcome = try tryPodman(arguments)
    if outcome.code != 0 {
      throw Failure("podman \(arguments.joined(separator: " ")): \(outcome.output)")
    }
    return outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// A container with the policy `server` that sees this machine's programs, and the directory of test programs.
  func start(_ name: String, _ options: [String] = [], _ command: [String]) throws {
    let outcome = try tryPodman(
      [
        "run", "-d", "--name", name, "--label", "dormouse.policy=server",
        "--label", "dormouse.background.suspend_after=never",
        "--label", "dormouse.hibernate.after=never", "--label", "dormouse.hibernate.cooldown=0s",
        "-v", "/usr:/usr:ro",
        "-v", "\(scratch.path):/test",
      ] + options + [Self.image] + command)
    if outcome.code != 0 { throw Failure("podman run \(name): \(outcome.output)") }
  }

  func pid(of name: String) throws -> Int32 {
    Int32(try podman("inspect", "-f", "{{.State.Pid}}", name)) ?? 0
  }

  /// What the kernel charges its cgroup for, in bytes; nil: nothing counts that here.
  func charge(of name: String) throws -> Int64? {
    let text = try String(contentsOfFile: "/proc/\(try pid(of: name))/cgroup", encoding: .utf8)
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { continue }
      let file =
        parts[1] == "memory"
        ? "/sys/fs/cgroup/memory\(parts[2])/memory.usage_in_bytes"
        : "/sys/fs/cgroup\(parts[2])/memory.current"
      // Only one of the two is there.
      if let value = try? String(contentsOfFile: file, encoding: .utf8) {
        return Int64(value.trimmingCharacters(in: .whitespacesAndNewlines))
      }
    }
    return nil
  }

  deinit {
    // What is left is in a directory that is removed, or is ended with the holder.
    _ = try? tryPodman(["rm", "-af", "-t", "0"])
    stopService()
    kill(holder, SIGKILL)
    _ = try? Self.wait(for: holder)
  }

  /// Why no container can be started here; nil: one can.
  static let obstacle: String? = {
    if geteuid() != 0 { return "only root starts containers here" }
    guard FileManager.default.isExecutableFile(atPath: "/usr/bin/podman") else {
      return "podman isn't installed"
    }
    guard TestedPrograms.hasDormouse else { return "no dormouse: build the root package" }
    do {
      let podman = try PodmanRuntime()
      try podman.start("trial", ["-p", "127.0.0.1::8000"], ["/bin/sleep", "1"])
      return nil
    } catch { return "podman can't start a container here: \(error)" }
  }()
}
