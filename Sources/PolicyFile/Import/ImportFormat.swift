import YAML

/// The format of another supervisor's file.
public enum ImportFormat: String, CaseIterable, Sendable {
  case procfile
  case processCompose = "process-compose"
  case compose
  case supervisor
  case unit
  case pm2
  case quadlet

  /// The format of a file with this name and text. nil: the file can't be imported.
  public init?(fileName name: String, text: String) {
    let ending = name.lastIndex(of: ".").map { name[$0...].dropFirst() } ?? ""
    switch ending {
    case "service": self = .unit
    case "container": self = .quadlet
    case "conf", "ini": self = .supervisor
    case "yaml", "yml": self = Self.ofYAML(name, text)
    // These are the endings of pm2's `ecosystem.config.js` or `.json`. Other programs and data
    // aren't imported. A Procfile may have any other ending.
    case "js", "cjs", "mjs", "json":
      guard text.contains("apps") || text.contains("script") else { return nil }
      self = .pm2
    case "ts", "toml": return nil
    default: self = .procfile
    }
  }

  /// Distinguishes YAML files by their content: process-compose reads a `compose.yaml`, too, and
  /// Docker's files have many names.
  private static func ofYAML(_ name: String, _ text: String) -> ImportFormat {
    let sink = DiagnosticSink(source: SourceText(text: text, file: name))
    let keys = Document.compose(sink)?.root?.mapping
    let hasServices = keys?["services"] != nil || keys?["include"] != nil
    let hasProcesses = keys?["processes"] != nil
    if keys?["apps"] != nil, !hasServices, !hasProcesses { return .pm2 }
    if hasServices != hasProcesses { return hasServices ? .compose : .processCompose }
    let isDockers = name.hasPrefix("compose.") || name.hasPrefix("docker-compose")
    return isDockers ? .compose : .processCompose
  }
}
