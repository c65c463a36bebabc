/// The words that are put before a command: `/usr/bin/dormouse wrap [options] --`.
public struct WrapWords: Hashable, Sendable {
  public var program: String
  public var options: [String]

  public init(program: String, options: [String] = []) {
    self.program = program
    self.options = options
  }

  public var all: [String] { [program, "wrap"] + options + ["--"] }

  /// What of a command is `dormouse wrap`.
  enum Found: Hashable {
    case nothing
    /// So many words are in front of the command.
    case words(Int)
    /// There is no `--`, and so it isn't known where the command begins.
    case unclear
  }

  static func find(in command: [String]) -> Found {
    guard let program = command.first, baseName(program) == "dormouse",
      command.dropFirst().first == "wrap"
    else { return .nothing }
    guard let end = command.firstIndex(of: "--"), end + 1 < command.count else { return .unclear }
    return .words(end + 1)
  }
}

func baseName(_ path: String) -> String {
  path.split(separator: "/").last.map(String.init) ?? path
}
