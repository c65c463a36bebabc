import Glibc
import Linux

/// What started a wrapper, for people: `claude`, `nvim`, or the terminal.
struct HostName {
  /// A process's arguments, and its parent.
  struct Ancestor {
    var arguments: [String]
    var parent: Int32
  }

  private let ancestor: (Int32) -> Ancestor?

  /// - Parameter ancestor: nil: it has ended, or can't be read.
  init(_ ancestor: @escaping (Int32) -> Ancestor?) { self.ancestor = ancestor }

  /// nil: nothing with a name.
  static func ofThisProcess() -> String? {
    if isatty(STDIN_FILENO) == 1 { return terminal() }
    return HostName { pid in
      // It has ended, or is another user's.
      guard let stat = try? ProcessStat.read(pid), let command = try? ProcessCommand.read(pid)
      else { return nil }
      return Ancestor(arguments: command.arguments, parent: stat.parent)
    }.name(from: getppid())
  }

  /// `pts/3`
  private static func terminal() -> String? {
    readLink("/proc/self/fd/0").map { $0.hasPrefix("/dev/") ? String($0.dropFirst(5)) : $0 }
  }

  /// The nearest ancestor that isn't there only to start another program.
  func name(from parent: Int32) -> String? {
    var pid = parent
    for _ in 0..<16 where pid > 1 {
      guard let found = ancestor(pid) else { return nil }
      if let name = Self.name(of: found.arguments), !Self.starters.contains(name) { return name }
      pid = found.parent
    }
    return nil
  }

  private static let starters: Set = [
    "sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "env", "npx", "npm", "npx-cli", "npm-cli",
    "uv", "uvx", "dormouse", "systemd",
  ]
  private static let interpreters = ["node", "python", "ruby", "bun", "deno", "perl"]
  /// Names of files and directories that say nothing of the program.
  private static let general: Set = [
    "index", "main", "cli", "server", "start", "__main__", "bin", "dist", "out", "lib", "src",
    "build", "app", "bootstrap-fork",
  ]

  /// The program's name; of an interpreted one the script's, or the nearest directory's that says something.
  static func name(of arguments: [String]) -> String? {
    guard let first = arguments.first else { return nil }
    // A program may have written a title over its arguments.
    let word = first.split(separator: " ").first.map(String.init) ?? first
    let program = last(word)
    guard interpreters.contains(where: { isVersion(of: $0, program) }) else {
      return program.isEmpty ? nil : program
    }
    let rest = Array(arguments.dropFirst())
    if let place = rest.firstIndex(of: "-m"), rest.indices.contains(place + 1) {
      return rest[place + 1]
    }
    guard let script = rest.first(where: { !$0.hasPrefix("-") }) else { return program }
    let parts = script.split(separator: "/").map { withoutExtension(String($0)) }
    return parts.last { !general.contains($0) } ?? program
  }

  private static func last(_ path: String) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    // A login shell's.
    return name.hasPrefix("-") ? String(name.dropFirst()) : name
  }

  /// `python3.11` of `python`.
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
