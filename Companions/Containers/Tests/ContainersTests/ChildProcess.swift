import Foundation

/// Programs that outlive the call that starts them, or that start such programs.
enum ChildProcess {
  static func run(_ command: [String], output file: String) throws -> TestedPrograms.Outcome {
    let code = try wait(for: spawn(command, output: file))
    return TestedPrograms.Outcome(
      code: code, output: try String(contentsOfFile: file, encoding: .utf8))
  }

  /// Starts a program without Foundation's `Process`: that waits until all processes that have
  /// inherited a descriptor of it have ended, and a container's monitor is one.
  static func spawn(_ command: [String], output: String) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    // Descriptors that belong to other processes of the tests aren't inherited.
    let closing = "import os, sys; os.closerange(3, 4096); os.execv(sys.argv[1], sys.argv[1:])"
    let command = ["/usr/bin/python3", "-c", closing] + command
    var arguments = command.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var pid: pid_t = 0
    let failure = posix_spawn(&pid, command[0], &actions, nil, &arguments, environ)
    if failure != 0 { throw Failure("\(command[0]): errno \(failure)") }
    return pid
  }

  static func wait(for pid: pid_t) throws -> Int32 {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 {
      if errno != EINTR { throw Failure("waitpid: errno \(errno)") }
    }
    return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
  }
}

/// A mount namespace for a runtime. Runtimes refuse the two versions of cgroups side by side, so
/// version 2 is hidden there. It ends with this object.
final class MountHolder: Sendable {
  private let pid: pid_t

  init(_ scratch: ScratchDirectory) throws {
    pid = try ChildProcess.spawn(
      [
        "/usr/bin/unshare", "-m", "--propagation", "private", "sh", "-c",
        "umount /sys/fs/cgroup/unified 2>/dev/null; touch \(scratch.path)/held; exec sleep 100000",
      ], output: "/dev/null")
    let deadline = ContinuousClock.now + .seconds(30)
    while !FileManager.default.fileExists(atPath: "\(scratch.path)/held") {
      if ContinuousClock.now > deadline { throw Failure("no mount namespace") }
      usleep(20_000)
    }
  }

  func inside(_ command: [String]) -> [String] {
    ["/usr/bin/nsenter", "-t", "\(pid)", "-m"] + command
  }

  deinit {
    kill(pid, SIGKILL)
    // The process is this process's child.
    _ = try? ChildProcess.wait(for: pid)
  }
}
