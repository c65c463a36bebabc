import Linux
import TestSupport

/// A user's directories, and projects in them. Its release ends the user's daemon and those of the
/// projects.
final class Home {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    for directory in ["run", "state"] {
      try makeDirectory("\(scratch.path)/\(directory)", mode: 0o700)
    }
  }

  deinit {
    for name in ["shop", "forum"] { _ = try? run(["down"], in: name) }
    _ = try? run(["shutdown"], in: "")
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
