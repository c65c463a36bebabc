/// The arguments that are inserted before a command: `/usr/bin/dormouse wrap [options] --`.
public struct WrapPrefix: Hashable, Sendable {
  public var program: String
  public var options: [String]
  /// True if options that suit a server are added unless they are given: those of its host, and its
  /// name in the configuration (`--name`; twenty servers may be `npx`).
  public var addsOptions: Bool

  public init(program: String, options: [String] = [], addsOptions: Bool = false) {
    self.program = program
    self.options = options
    self.addsOptions = addsOptions
  }

  /// The options without those that suit the host, as an earlier version wrote them; nil if there
  /// are no others.
  private var given: [String]?

  private static let nameOption = "--name"

  private func has(_ option: String) -> Bool {
    options.contains { $0 == option || $0.hasPrefix("\(option)=") }
  }

  /// Returns these arguments with the options that suit the host's servers.
  func suiting(_ host: IntegratedHost) -> WrapPrefix {
    let hostOptions = host.options
    guard addsOptions, let first = hostOptions.first, !has(first) else { return self }
    var suited = WrapPrefix(program: program, options: hostOptions + options, addsOptions: true)
    suited.given = options
    return suited
  }

  /// Returns these arguments with the server's name, if its command doesn't show it.
  func named(_ server: String, command: [String]) -> WrapPrefix {
    guard addsOptions, !has(Self.nameOption), let label = Self.label(server),
      label != command.first.map(baseName)
    else { return self }
    return WrapPrefix(program: program, options: options + [Self.nameOption, label])
  }

  /// Returns a label that `--name` accepts; nil if the server's name has no usable character.
  static func label(_ server: String) -> String? {
    let allowed = server.unicodeScalars.map { scalar -> Character in
      let isLetter = ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar)
      let isOther = ("0"..."9").contains(scalar) || "-_.".unicodeScalars.contains(scalar)
      return isLetter || isOther ? Character(scalar) : "-"
    }
    let label = String(String(allowed.drop { $0 == "-" || $0 == "." }).prefix(40))
    return label.isEmpty ? nil : label
  }

  /// Returns whether a command was wrapped with these options, with or without a name.
  func matches(_ other: [String]) -> Bool {
    let isNamed = addsOptions && !has(Self.nameOption)
    return [options, given].compactMap(\.self).contains { options in
      if other == options { return true }
      return isNamed && other.count == options.count + 2 && other.starts(with: options)
        && other[options.count] == Self.nameOption
    }
  }

  public var all: [String] { [program, "wrap"] + options + ["--"] }

  /// The `dormouse wrap` at the beginning of a command.
  enum Match: Hashable {
    case nothing
    /// The number of arguments in front of the wrapped command.
    case arguments(Int)
    /// There is no `--`, so the beginning of the wrapped command is unknown.
    case unclear
  }

  static func find(in command: [String]) -> Match {
    guard let program = command.first, baseName(program) == "dormouse",
      command.dropFirst().first == "wrap"
    else { return .nothing }
    guard let end = command.firstIndex(of: "--"), end + 1 < command.count else { return .unclear }
    return .arguments(end + 1)
  }
}

func baseName(_ path: String) -> String {
  path.split(separator: "/").last.map(String.init) ?? path
}
