import Policy

/// Imports a service of systemd, with its drop-ins.
public enum UnitImport {
  public struct File: Sendable {
    public var path: String
    public var text: String

    public init(path: String, text: String) { (self.path, self.text) = (path, text) }
  }

  /// Converts a unit.
  ///
  /// - Parameters:
  ///   - unit: its whole name, such as `bot@alice.service`.
  ///   - files: the unit's file, and its drop-ins in their order.
  ///   - pathExists: returns true if a path exists, for `EnvironmentFile=-/etc/default/…`.
  ///   - variables: returns the variables of such a file, which override those of `Environment`.
  ///     nil: the file can't be read.
  public static func convert(
    unit: String, files: [File], pathExists: @escaping (String) -> Bool,
    variables: @escaping (_ file: String) -> [String: String]? = { _ in nil }
  ) -> ParseResult<ImportedConfiguration> {
    guard let main = files.first else { return ParseResult(value: nil, diagnostics: []) }
    let sinks = files.map {
      DiagnosticSink(source: SourceText(text: $0.text, file: $0.path))
    }
    var entries: [String: [SectionedFile.Entry]] = [:]
    var start: (sink: DiagnosticSink, position: Position)?
    for (file, sink) in zip(files, sinks) {
      for section in SectionedFile(file.text, syntax: .unit, sink: sink).sections {
        entries[section.name, default: []] += section.entries
        let last = section.entries.last { $0.key == "ExecStart" && !$0.value.isEmpty }
        if section.name == "Service", let last { start = (sink, last.position) }
      }
    }
    let sink = sinks[0]
    func result(_ value: ImportedConfiguration?) -> ParseResult<ImportedConfiguration> {
      ParseResult(
        value: sinks.contains { $0.hasErrors } ? nil : value,
        diagnostics: sinks.flatMap(\.diagnostics))
    }
    guard let service = entries["Service"] else {
      sink.error(at: nil, "not a service of systemd: no `[Service]`")
      return result(nil)
    }
    var converter = UnitService(
      unit: UnitName(unit, isOfUser: main.path.contains("/systemd/user/")),
      service: ForeignSection(service),
      head: ForeignSection(entries["Unit"] ?? []), pathExists: pathExists, variables: variables)
    guard let worker = converter.worker() else {
      let (problem, suggestion) = problem(withStart: service)
      (start?.sink ?? sink).error(at: start?.position, problem, suggestion: suggestion)
      return result(nil)
    }
    var imported = ImportedFile(source: FilePaths.name(of: main.path))
    imported.workers = [worker]
    imported.notes.append(
      "While systemd runs this service, `dormouse adopt --unit \(unit)` puts it to sleep where "
        + "it is; this file is for a service that Dormouse starts instead.")
    return result(imported.rendered())
  }

  /// Returns the reason why there is no command.
  private static func problem(
    withStart entries: [SectionedFile.Entry]
  ) -> (text: String, suggestion: String?) {
    var service = ForeignSection(entries)
    let starts = service.all("ExecStart")
    guard let first = starts.first else { return ("there is no `ExecStart`", nil) }
    let count = starts.count > 1 ? starts.count : UnitTokenizer.commands(first)?.count ?? 0
    guard count > 1 else { return ("`ExecStart` can't be read: see systemd.syntax(7)", nil) }
    return (
      "`ExecStart` has \(count) commands, a worker one",
      "write a script that runs them one after the other"
    )
  }
}

/// The name of a unit such as `bot@alice.service`, and the values of `%` specifiers in its file
/// (systemd.unit(5)).
struct UnitName {
  var whole: String
  var bare: String
  var prefix: String
  /// The instance of a template. nil: there is none, as in `bot@.service`.
  var instance: String?

  /// True for a unit of a user, whose directories are below a home directory.
  private let isOfUser: Bool

  init(_ name: String, isOfUser: Bool) {
    whole = name
    self.isOfUser = isOfUser
    bare = name.hasSuffix(".service") ? String(name.dropLast(8)) : name
    let nameParts = bare.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
    prefix = String(nameParts[0])
    instance = bare.hasSuffix("@") ? nil : nameParts.count > 1 ? String(nameParts[1]) : ""
  }

  /// The name as a worker's name: `bot-alice`.
  var worker: String {
    let start = NameRule.fitted(bare.split(separator: "@").joined(separator: "-"))
    return start.isEmpty ? "worker" : start
  }

  /// Returns the text with its specifiers replaced. Specifiers that aren't known here are added to
  /// `unknown`.
  func expand(_ text: String, _ unknown: inout [String]) -> String {
    DollarText.replaced(text, at: "%") { remainder in
      guard let letter = remainder.first else { return ("%", remainder) }
      let specifier = "%\(letter)"
      let value = value(of: specifier)
      if value == nil { unknown.append(specifier) }
      return (value ?? specifier, remainder.dropFirst())
    }
  }

  /// Returns nil if the specifier isn't known here.
  func value(of specifier: String) -> String? {
    let ofAll: [String: String?] = [
      "%%": "%", "%n": whole, "%N": bare, "%p": prefix, "%i": instance, "%T": "/tmp",
      "%V": "/var/tmp",
    ]
    if let value = ofAll[specifier] { return value }
    let ofSystem = [
      "%t": "/run", "%S": "/var/lib", "%C": "/var/cache", "%L": "/var/log", "%E": "/etc",
      "%h": "/root", "%u": "root", "%U": "0",
    ]
    return isOfUser ? nil : ofSystem[specifier]
  }
}
