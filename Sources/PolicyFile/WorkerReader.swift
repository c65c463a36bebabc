import Policy
import Yams

/// Reads one entry of `workers:`.
struct WorkerReader {
  var name: String
  var reader: MappingReader
  /// The configuration file's directory.
  var directory: String
  var environment: [String: String]
  var policy: LifecyclePolicy

  /// `nil` where there is no command to run, which is reported.
  func read(at position: Position?) -> WorkerConfiguration? {
    var worker = WorkerConfiguration(name: name, command: [], directory: directory, policy: policy)
    worker.command = reader.command("command") ?? []
    if reader.position(ofKey: "command") == nil {
      reader.sink.error(
        at: position, "`\(shortened(name))` has no `command`",
        suggestion: "write `command: [program, argument]`")
    }
    reader.read(
      "directory", into: &worker.directory,
      as: Converter.path("a directory's path", from: directory))
    reader.section("environment") {
      worker.environment = EnvironmentReader(reader: $0, outer: environment).read()
    }
    reader.read("importance", into: &worker.importance, as: .integer(0...100))
    reader.read("autostart", into: &worker.autostart, as: .boolean)
    reader.section("shed") { worker.shed = shed($0) }
    reader.section("readiness") { worker.readiness = readiness($0) }
    reader.read("stop_signal", into: &worker.stopSignal, as: .stopSignal)
    if let node = reader.node("policy"),
      let overrides = reader.reader(of: node, called: "policy", places: .init())
    {
      worker.policy = PolicyReader(scope: .worker).read(overrides, over: policy)
    }
    reader.finish()
    return worker.command.isEmpty ? nil : worker
  }

  private func shed(_ reader: MappingReader) -> WorkerConfiguration.Shed? {
    let signal = reader.read("signal", as: .shedSignal)
    let command = reader.command("command")
    let notify = reader.read("notify", as: .boolean)
    notYet("http", in: reader)
    one(of: ["signal", "command", "notify"], in: reader, example: "signal: USR1")
    if let signal { return .signal(signal) }
    if let command { return .command(command) }
    return notify == true ? .notify : nil
  }

  private func readiness(_ reader: MappingReader) -> WorkerConfiguration.Readiness? {
    let notify = reader.read("notify", as: .boolean)
    let port = reader.read("tcp", as: .integer(1...65_535))
    let line = reader.read(
      "log_line",
      as: Converter.text("a part of a line of output").checked { $0.isEmpty ? .wrongKind : nil })
    notYet("http", in: reader)
    one(of: ["notify", "tcp", "log_line"], in: reader, example: "notify: true")
    if let port { return .tcp(UInt16(port)) }
    if let line { return .logLine(line) }
    return notify == true ? .notify : nil
  }

  private func notYet(_ key: String, in reader: MappingReader) {
    guard let position = reader.refused(key) else { return }
    reader.sink.error(at: position, "`\(key)` isn't in this version yet")
  }

  /// Two channels for one purpose would leave open which of them counts.
  private func one(of keys: [String], in reader: MappingReader, example: String) {
    let there = keys.filter { reader.position(ofKey: $0) != nil }
    if there.count > 1, let last = there.compactMap({ reader.position(ofKey: $0) }).max() {
      reader.sink.error(at: last, "only one of \(listed(keys)) can be chosen")
    }
    if reader.order.isEmpty {
      reader.sink.error(
        at: reader.own ?? self.reader.places[reader.path],
        "this needs one of \(listed(keys))", suggestion: "write `{ \(example) }`")
    }
  }
}
