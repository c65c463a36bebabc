import Foundation
import Testing

/// Podman with a store of its own, its service, and a holder of the mounts and network namespaces that it makes. All
/// of it ends with this object. Images aren't fetched: one without files of its own is made here, and the containers
/// see this machine's /usr.
final class PodmanRuntime {
  let scratch: ScratchDirectory
  var socket: String { "\(scratch.path)/podman.sock" }
  private let holder: Process
  private var service: Process?

  static let image = "localhost/dormouse-test"

  init() throws {
    scratch = try ScratchDirectory()
    // In a mount namespace: crun refuses the two versions of cgroups side by side, so version 2 is hidden there.
    holder = try Self.started(
      "/usr/bin/unshare",
      [
        "-m", "--propagation", "private", "sh", "-c",
        "umount /sys/fs/cgroup/unified 2>/dev/null; touch \(scratch.path)/held; exec sleep 100000",
      ])
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
    service = try Self.started("/usr/bin/nsenter", inside(["system", "service", "--time=0", "unix://\(socket)"]))
    let deadline = ContinuousClock.now + .seconds(30)
    while !FileManager.default.fileExists(atPath: socket) {
      if ContinuousClock.now > deadline { throw Failure("podman's service doesn't listen") }
      usleep(20_000)
    }
  }

  func stopService() {
    guard let service else { return }
    kill(service.processIdentifier, SIGTERM)
    service.waitUntilExit()
    self.service = nil
    unlink(socket)
  }

  private static func started(_ program: String, _ arguments: [String]) throws -> Process {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }

  private func inside(_ arguments: [String]) -> [String] {
    [
      "-t", "\(holder.processIdentifier)", "-m", "env", "CONTAINERS_CONF=\(scratch.path)/containers.conf", "podman",
      "--root", "\(scratch.path)/store", "--runroot", "\(scratch.path)/run", "--storage-driver", "vfs",
    ] + arguments
  }

  func tryPodman(_ arguments: [String]) throws -> TestedPrograms.Outcome {
    // Its processes would hold a pipe open.
    let file = "\(scratch.path)/output"
    _ = FileManager.default.createFile(atPath: file, contents: nil)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/nsenter")
    process.arguments = inside(arguments)
    process.standardInput = FileHandle.nullDevice
    let output = FileHandle(forWritingAtPath: file)
    process.standardOutput = output
    process.standardError = output
    try process.run()
    process.waitUntilExit()
    let text = try String(contentsOfFile: file, encoding: .utf8)
    return TestedPrograms.Outcome(code: process.terminationStatus, output: text)
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
        "run", "-d", "--name", name, "--label", "dormouse.policy=server", "-v", "/usr:/usr:ro",
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
    _ = try? tryPodman(["network", "reload", "-a"])
    kill(holder.processIdentifier, SIGKILL)
    holder.waitUntilExit()
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
