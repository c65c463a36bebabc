import Glibc
import Linux

/// The name of the program that started a wrapper, for the operator: `claude`, `nvim`, or the
/// terminal.
struct HostName {
  /// The arguments of a process, and the pid of its parent.
  struct Ancestor {
    var arguments: [String]
    var parent: Int32
  }

  private let ancestor: (Int32) -> Ancestor?

  /// - Parameter ancestor: reads a process; nil if it has ended or can't be read.
  init(_ ancestor: @escaping (Int32) -> Ancestor?) { self.ancestor = ancestor }

  /// The name for this process, or nil if no ancestor has a name.
  static func ofThisProcess() -> String? {
    if isatty(STDIN_FILENO) == 1 {
      // It is the terminal's name, such as `pts/3`.
      let path = readLink("/proc/self/fd/0")
      return path.map { $0.hasPrefix("/dev/") ? String($0.dropFirst(5)) : $0 }
    }
    return HostName { pid in
      // The process has ended, or belongs to another user.
      guard let stat = try? ProcessStat.read(pid), let command = try? ProcessCommand.read(pid)
      else { return nil }
      return Ancestor(arguments: command.arguments, parent: stat.parent)
    }.name(from: getppid())
  }

  /// The name of the nearest ancestor that isn't only there to start another program.
  func name(from parent: Int32) -> String? {
    var pid = parent
    for _ in 0..<16 where pid > 1 {
      guard let process = ancestor(pid) else { return nil }
      if let name = Self.name(of: process.arguments), !Self.starters.contains(name) { return name }
      pid = process.parent
    }
    return nil
  }

  private static let starters: Set = [
    "sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "env", "npx", "npm", "npx-cli", "npm-cli",
    "uv", "uvx", "dormouse", "systemd",
  ]
  private static let interpreters = ["node", "python", "ruby", "bun", "deno", "perl"]
  /// Names of files and directories that don't identify a program.
  private static let general: Set = [
    "index", "main", "cli", "server", "start", "__main__", "bin", "dist", "out", "lib", "src",
    "build", "app", "bootstrap-fork",
  ]

  /// The program's name. For an interpreter it is the name of the script, or of the nearest
  /// directory that identifies the program.
  static func name(of arguments: [String]) -> String? {
    guard let first = arguments.first else { return nil }
    // A program may have written a title over its arguments.
    let word = first.split(separator: " ").first.map(String.init) ?? first
    let program = last(word)
    guard interpreters.contains(where: { isVersion(of: $0, program) }) else {
      return program.isEmpty ? nil : program
    }
    let options = Array(arguments.dropFirst())
    if let index = options.firstIndex(of: "-m"), options.indices.contains(index + 1) {
      return options[index + 1]
    }
    guard let script = options.first(where: { !$0.hasPrefix("-") }) else { return program }
    let parts = script.split(separator: "/").map { withoutExtension(String($0)) }
    return parts.last { !general.contains($0) } ?? program
  }

  private static func last(_ path: String) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    // The name of a login shell begins with `-`.
    return name.hasPrefix("-") ? String(name.dropFirst()) : name
  }

  /// True for an interpreter with a version, such as `python3.11`.
  private static func isVersion(of interpreter: String, _ program: String) -> Bool {
    program.hasPrefix(interpreter)
      && program.dropFirst(interpreter.count).allSatisfy { $0.isNumber || $0 == "." }
  }

  private static func withoutExtension(_ name: String) -> String {
    for ending in [".js", ".mjs", ".cjs", ".ts", ".py", ".rb", ".pl"] where name.hasSuffix(ending) {
      return String(name.dropLast(ending.count))
    }
    return name
  }
}
