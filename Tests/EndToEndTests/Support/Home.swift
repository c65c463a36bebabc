import Glibc
import Linux
import TestSupport
import Testing

/// A user's directories, and projects in them. Its release ends the user's daemon and those of the
/// projects, and fails the test if one of them doesn't end by `down` or `shutdown`.
final class Home {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    for directory in ["run", "state"] {
      try makeDirectory("\(scratch.path)/\(directory)", mode: 0o700)
    }
  }

  deinit {
    // The verbs fail if there is no daemon.
    var outcomes: [String] = []
    for (verb, directory) in [("down", "shop"), ("down", "forum"), ("shutdown", "")] {
      let outcome = Result { try run([verb], in: directory) }
      outcomes.append("\(verb) \(directory): \(outcome)")
    }
    for pid in endDaemons() {
      Issue.record("the daemon \(pid) didn't end: \(outcomes.joined(separator: "\n"))")
    }
  }

  /// Daemons with these directories, also those that a client started.
  func daemons() throws -> [Int32] {
    try ListedProcess.all().map(\.pid).filter { pid in
      let arguments = ProcessDetails.command(of: pid)?.prefix(2)
      // Another user's process may not be read, and a process may have ended.
      guard arguments?.last == "daemon", arguments?.first?.hasSuffix("dormouse") == true,
        let environment = try? readText("/proc/\(pid)/environ")
      else { return false }
      return environment.split(separator: "\0").contains("XDG_STATE_HOME=\(scratch.path)/state")
    }
  }

  /// Ends daemons that still run. The end of others that have answered may take a moment.
  ///
  /// - Parameter limit: the time that they have to end by themselves.
  /// - Returns: the pids of daemons that got a signal.
  func endDaemons(after limit: Duration = .seconds(60)) -> [Int32] {
    // If /proc can't be read, no test of daemons passes.
    let hasEnded = try? eventually(within: limit) { try daemons().isEmpty }
    if hasEnded == true { return [] }
    let left = (try? daemons()) ?? []
    for pid in left {
      // An error means that it has ended.
      guard let pidfd = try? Descriptor.pidfd(of: pid) else { continue }
      for signal in [SIGTERM, SIGTERM, SIGKILL] {
        kill(pid, signal)
        let limit = Deadline(in: .seconds(signal == SIGKILL ? 60 : 5))
        // If it can't be waited for, it gets the next signal.
        if (try? pollDescriptor(pidfd.raw, for: POLLIN, until: limit)) == true { break }
      }
    }
    return left
  }

  func project(_ name: String, _ configuration: String) throws {
    for directory in [name, "\(name)/src"] {
      try makeDirectory("\(scratch.path)/\(directory)", mode: 0o700)
    }
    try scratch.write("\(name)/dormouse.yaml", configuration)
  }

  func command(_ arguments: [String], in directory: String) -> Command {
    bare([TestMachine.executable] + arguments, in: directory)
  }

  /// A command other than Dormouse's, in the same environment.
  func bare(_ arguments: [String], in directory: String) -> Command {
    var command = Command(arguments: arguments)
    command.directory = directory.isEmpty ? "/" : "\(scratch.path)/\(directory)"
    command.environment["XDG_RUNTIME_DIR"] = "\(scratch.path)/run"
    command.environment["XDG_STATE_HOME"] = "\(scratch.path)/state"
    command.environment["XDG_CONFIG_HOME"] = "\(scratch.path)/config"
    command.environment["DORMOUSE_CGROUP"] = "/proc/nowhere"
    return command
  }

  @discardableResult
  func run(_ arguments: [String], in directory: String) throws -> Outcome {
    try command(arguments, in: directory).run(in: scratch)
  }
}
