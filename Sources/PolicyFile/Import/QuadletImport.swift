import YAML

/// Imports a Quadlet of Podman, `NAME.container` (podman-systemd.unit(5)), as far as a process
/// without a container can do the same. Its `[Service]` section is systemd's.
public enum QuadletImport {
  /// Converts a file.
  ///
  /// - Parameter pathExists: returns true if a path exists.
  public static func convert(
    text: String, file: String, pathExists: @escaping (String) -> Bool
  ) -> ParseResult<ImportedConfiguration> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    var entries: [String: [SectionedFile.Entry]] = [:]
    for section in SectionedFile(text, syntax: .unit, sink: sink).sections {
      entries[section.name, default: []] += section.entries
    }
    guard let container = entries["Container"] else {
      sink.error(at: nil, "not a Quadlet of a container: no `[Container]`")
      return sink.result(nil)
    }
    var quadlet = Quadlet(container)
    let name = FilePaths.name(of: file)
    let bare = name.hasSuffix(".container") ? String(name.dropLast(10)) : name
    let isOfSystem = ["/etc/containers/systemd/", "/usr/share/containers/systemd/"].contains {
      file.hasPrefix($0)
    }
    var converter = UnitService(
      unit: UnitName("\(bare).service", isOfUser: !isOfSystem),
      service: ForeignSection((entries["Service"] ?? []) + quadlet.service()),
      head: ForeignSection(entries["Unit"] ?? []), pathExists: pathExists, variables: nil)
    guard var worker = converter.worker() else {
      let exec = container.last { $0.key == "Exec" || $0.key == "Entrypoint" }
      sink.error(
        at: exec?.position, "`Exec` can't be read, or has several commands: see systemd.syntax(7)")
      return sink.result(nil)
    }
    quadlet.importOtherKeys(&worker)
    var imported = ImportedFile(source: name)
    imported.workers = [worker]
    imported.notes.append(
      "The container becomes a plain process: install what its image holds, check the command and "
        + "paths, and remove `autostart: false`. While Podman runs it, `dormouse-containers` puts "
        + "it to sleep where it is, by a label: that keeps all of it.")
    return sink.result(imported.rendered())
  }
}

/// Imports the section `[Container]`.
private struct Quadlet {
  private var container: ForeignSection
  private var notes: [String] = []

  init(_ entries: [SectionedFile.Entry]) { container = ForeignSection(entries) }

  /// Returns the entries that `[Service]` can express.
  mutating func service() -> [SectionedFile.Entry] {
    var entries: [SectionedFile.Entry] = []
    func add(_ key: String, _ value: String) {
      entries.append(.init(key: key, value: value, position: Position(line: 1, column: 1)))
    }
    add("ExecStart", command())
    for (theirs, ours) in [
      ("Environment", "Environment"), ("EnvironmentFile", "EnvironmentFile"),
      ("StopSignal", "KillSignal"), ("StopTimeout", "TimeoutStopSec"), ("Memory", "MemoryMax"),
    ] {
      // systemd's 0 is no limit, and Podman's ends the container at once.
      for value in container.all(theirs) where theirs != "StopTimeout" || value != "0" {
        add(ours, value)
      }
    }
    if container.truth("Notify") == true { add("Type", "notify") }
    return entries
  }

  private mutating func command() -> String {
    if let image = container.text("Image") { notes.append("Its image: `\(shortened(image))`.") }
    let entry = container.text("Entrypoint").map(Self.line)
    let exec = container.text("Exec")
    guard let start = entry ?? exec else {
      notes.append("Its command is the image's: write it here.")
      return "false"
    }
    if entry == nil {
      notes.append(
        "`Exec` is what the image's entrypoint gets, if it has one: put that program first then.")
    }
    // A sign of systemd's `ExecStart` means nothing here. Written as an escape, it is a plain
    // character.
    let line = ([start] + (entry == nil ? [] : [exec].compactMap { $0 })).joined(separator: " ")
    guard let sign = line.unicodeScalars.first, "-@:+!|".unicodeScalars.contains(sign) else {
      return line
    }
    return "\\x" + String(sign.value, radix: 16) + line.dropFirst()
  }

  /// Reads an entrypoint: a text, or a list in JSON.
  private static func line(_ text: String) -> String {
    guard text.hasPrefix("["), let node = try? LiteralText.read(text),
      case .sequence(let items) = node
    else { return text }
    return items.compactMap { $0.scalar?.string }.map { word in
      "\"" + word.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }.joined(separator: " ")
  }

  /// Handles the remaining keys, and adds notes on those that can't be imported.
  mutating func importOtherKeys(_ worker: inout ImportedWorker) {
    worker.isStopped = true
    importHealthCheck(&worker)
    for key in ["WorkingDir", "User", "Group"] {
      guard let text = container.text(key) else { continue }
      notes.append("`\(key)=\(shortened(text))` is one of the image: set it yourself.")
    }
    for port in container.all("PublishPort") {
      notes.append("`PublishPort=\(shortened(port))`: the program itself has to listen there.")
    }
    for volume in container.all("Volume") + container.all("Mount") {
      notes.append("Not taken over: the volume `\(shortened(volume))`; check the paths.")
    }
    container.skip("ContainerName", "Notify")
    for key in container.leftovers { notes.append("Not taken over: `\(key)`.") }
    worker.notes = notes + worker.notes
  }

  private mutating func importHealthCheck(_ worker: inout ImportedWorker) {
    guard let command = container.text("HealthCmd"), command != "none" else { return }
    guard !command.hasPrefix("[") else {
      return notes.append("Not taken over: `HealthCmd=\(shortened(command))`.")
    }
    let exec = YAMLText.mapping([("command", WorkerRenderer.command(["sh", "-c", command]))])
    var pairs: [(String, YAMLText)] = [("exec", exec)]
    if let retries = container.text("HealthRetries").flatMap({ Int($0) }),
      (1...1_000).contains(retries)
    {
      pairs.append(("failureThreshold", .plain("\(retries)")))
    }
    for (theirs, ours) in [
      ("HealthInterval", "periodSeconds"), ("HealthTimeout", "timeoutSeconds"),
    ] {
      guard let seconds = container.text(theirs).flatMap(ComposeQuantity.seconds), seconds > 0
      else {
        continue
      }
      pairs.append((ours, .plain("\(min(max(Int(seconds.rounded()), 1), 86_400))")))
    }
    worker.keys.removeAll { $0.0 == "readiness" }
    worker.keys.append(("readiness", .mapping(pairs)))
  }
}
