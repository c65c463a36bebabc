/// Imports supervisord's configuration: `[program:NAME]` and `[group:NAME]`.
public enum SupervisorImport {
  /// Converts a file.
  ///
  /// - Parameter directory: the directory of the file, for `%(here)s`.
  public static func convert(text: String, file: String, directory: String) -> ParseResult<
    ImportedConfiguration
  > {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    let parsed = SectionedFile(text, syntax: .supervisor, sink: sink)
    var result = ImportedFile(source: FilePaths.name(of: file))
    var shared: [(String, String)] = []
    var groups: [String: [String]] = [:]
    var includes: (position: Position, files: String)?
    for section in parsed.sections {
      var keys = ForeignSection(section.entries)
      if section.name == "supervisord", let text = keys.text("environment") {
        let expansion = Expansion(values: ["here": directory])
        let pairs = variables(text, expansion)
        shared = pairs ?? []
        if pairs == nil || !expansion.unknown.isEmpty {
          result.notes.append("`environment` of `[supervisord]` can't be read: check it.")
        }
      } else if section.name == "include" {
        let files = shortened(keys.text("files") ?? "")
        includes = (section.position, files)
        result.notes.append("`[include]`: import those files, too (\(files)).")
      } else if let name = name(of: section, after: "group:") {
        for program in (keys.text("programs") ?? "").split(whereSeparator: { ", ".contains($0) }) {
          groups[String(program), default: []].append(name)
        }
      } else if section.name.after("eventlistener:") != nil
        || section.name.after("fcgi-program:") != nil
      {
        result.notes.append("Not taken over: `[\(shortened(section.name))]`.")
      }
    }
    let programs = Self.programs(
      of: parsed, environment: shared, groups: groups, directory: directory, sink: sink)
    if programs.isEmpty, !sink.hasErrors {
      if let includes {
        sink.error(
          at: includes.position, "the file has no `[program:NAME]` and only includes others",
          suggestion: "import those files: \(includes.files)")
      } else {
        sink.error(at: nil, "not a supervisord.conf: no `[program:NAME]`")
      }
    }
    // supervisord starts programs with a lower priority first.
    let inOrder = programs.enumerated().sorted {
      ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset)
    }
    result.workers = inOrder.map(\.element.worker)
    return sink.result(result.rendered())
  }

  /// Returns the workers of all `[program:NAME]`, in the order of the file.
  private static func programs(
    of file: SectionedFile, environment: [(String, String)], groups: [String: [String]],
    directory: String, sink: DiagnosticSink
  ) -> [(priority: Int, worker: ImportedWorker)] {
    var programs: [(priority: Int, worker: ImportedWorker)] = []
    for section in file.sections {
      guard let name = name(of: section, after: "program:") else { continue }
      guard sink.allows(name, of: "a worker", at: section.position) else { continue }
      let source = SupervisorProgram.Source(
        name: name, entries: section.entries, environment: environment, groups: groups[name] ?? [],
        directory: directory)
      for number in source.numbers {
        var program = SupervisorProgram(source, number: number)
        guard let worker = program.worker() else {
          sink.error(at: section.position, "`\(name)` has no `command` that can be read")
          break
        }
        programs.append((source.priority, worker))
      }
    }
    return programs
  }

  /// Returns the name in a section's title. A blank may precede it: `[program: web]` is `web`.
  private static func name(of section: SectionedFile.Section, after kind: String) -> String? {
    section.name.after(kind).map { SectionedFile.trimmed(Substring($0)) }
  }

  /// Reads a list of variables such as `A="b,c",D=e`. nil: it can't be read.
  static func variables(_ text: String, _ expansion: Expansion) -> [(String, String)]? {
    var pairs: [(String, String)] = []
    var remainder = Substring(text)
    while true {
      remainder = remainder.drop { $0.isWhitespace || $0 == "," }
      if remainder.isEmpty { return pairs }
      guard let equals = remainder.firstIndex(of: "=") else { return nil }
      let name = String(remainder[..<equals].filter { !$0.isWhitespace })
      remainder = remainder[equals...].dropFirst().drop { $0 == " " }
      var value = ""
      if let quote = remainder.first, quote == "\"" || quote == "'" {
        remainder.removeFirst()
        guard let end = remainder.firstIndex(of: quote) else { return nil }
        value = String(remainder[..<end])
        remainder = remainder[end...].dropFirst()
      } else {
        value = String(remainder.prefix { $0 != "," && !$0.isWhitespace })
        remainder = remainder.dropFirst(value.count)
      }
      pairs.append((name, expansion.apply(value)))
    }
  }

  /// Replaces `%(program_name)s` and others. The names that aren't known here are recorded.
  final class Expansion {
    private let values: [String: String]
    private(set) var unknown: [String] = []

    init(values: [String: String]) { self.values = values }

    func apply(_ text: String) -> String {
      DollarText.replaced(text, at: "%") { remainder in
        guard remainder.hasPrefix("("), let end = remainder.firstIndex(of: ")") else {
          // `%%` is a `%`.
          return ("%", remainder.hasPrefix("%") ? remainder.dropFirst() : remainder)
        }
        let name = String(remainder[..<end].dropFirst())
        let format = remainder[end...].dropFirst().prefix { $0.isNumber }
        let behind = remainder[end...].dropFirst(2 + format.count)
        if let value = values[name] { return (padded(value, String(format)), behind) }
        if let variable = name.after("ENV_") { return ("\u{1}{\(variable)}", behind) }
        unknown.append("%(\(name))s")
        return ("%(\(name))s", behind)
      }
    }

    /// Formats a number as in `%(process_num)02d`.
    private func padded(_ value: String, _ format: String) -> String {
      guard format.hasPrefix("0"), let width = Int(format), width < 20, value.count < width else {
        return value
      }
      return String(repeating: "0", count: width - value.count) + value
    }
  }
}

extension String {
  /// Returns what follows a prefix. nil: the text has another prefix.
  func after(_ lead: String) -> String? {
    hasPrefix(lead) ? String(dropFirst(lead.count)) : nil
  }
}
