/// The words that are put before a command: `/usr/bin/dormouse wrap [options] --`.
public struct WrapWords: Hashable, Sendable {
  public var program: String
  public var options: [String]
  /// Options that suit a server are added if they aren't given: its host's, and its name in the configuration
  /// (`--name`; twenty of them may be `npx`).
  public var addsOptions: Bool

  public init(program: String, options: [String] = [], addsOptions: Bool = false) {
    self.program = program
    self.options = options
    self.addsOptions = addsOptions
  }

  /// The options without those that suit the host; an earlier version wrote these alone. `nil`: there are no others.
  private var given: [String]?

  private static let naming = "--name"

  private func has(_ option: String) -> Bool {
    options.contains { $0 == option || $0.hasPrefix("\(option)=") }
  }

  /// With an option that suits the host's servers.
  func suiting(_ host: IntegratedHost) -> WrapWords {
    let more = host.options
    guard addsOptions, let first = more.first, !has(first) else { return self }
    var words = WrapWords(program: program, options: more + options, addsOptions: true)
    words.given = options
    return words
  }

  /// With the server's name, if its command doesn't show it.
  func of(_ server: String, command: [String]) -> WrapWords {
    guard addsOptions, !has(Self.naming), let label = Self.label(server),
      label != command.first.map(baseName)
    else { return self }
    return WrapWords(program: program, options: options + [Self.naming, label])
  }

  /// What `--name` takes; nil: nothing is left.
  static func label(_ server: String) -> String? {
    let allowed = server.unicodeScalars.map { scalar -> Character in
      let isLetter = ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar)
      let isOther = ("0"..."9").contains(scalar) || "-_.".unicodeScalars.contains(scalar)
      return isLetter || isOther ? Character(scalar) : "-"
    }
    let label = String(String(allowed.drop { $0 == "-" || $0 == "." }).prefix(40))
    return label.isEmpty ? nil : label
  }

  /// Whether a command was wrapped with these options, named or not.
  func wrote(_ found: [String]) -> Bool {
    let isNamed = addsOptions && !has(Self.naming)
    return [options, given].compactMap(\.self).contains { options in
      if found == options { return true }
      return isNamed && found.count == options.count + 2 && found.starts(with: options)
        && found[options.count] == Self.naming
    }
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
