import Policy
import Synchronization
import YAML

/// Reads one entry of `workers:`.
struct WorkerReader {
  var name: String
  var reader: MappingReader
  /// The configuration's directory.
  var directory: String
  /// The daemon's, and `variables` over it.
  var environment: [String: String]
  var policy: LifecyclePolicy
  /// Of the instance; its environment has them, too.
  var variables: [String: String] = [:]
  var wait = ConfigurationFile.endlessly

  struct Result {
    /// `nil` where there is no command to run, which is reported.
    var worker: WorkerConfiguration?
    /// Where the policy's values that are this worker's own stand.
    var overridden: [String: Position]
  }

  func read(at position: Position?) -> Result {
    var worker = WorkerConfiguration(name: name, command: [], directory: directory, policy: policy)
    (worker.environment, worker.environmentFiles) = ownEnvironment()
    let commands = CommandReader(
      variables: environment.merging(worker.environment) { $1 },
      owner: worker.environmentFiles.isEmpty
        ? "the worker" : "the worker (its `env_file` is read when it is launched)")
    worker.command = commands.read("command", in: reader) ?? []
    if reader.position(ofKey: "command") == nil {
      reader.sink.error(
        at: position, "`\(shortened(name))` has no `command`",
        suggestion: "write `command: [program, argument]`")
    }
    reader.read(
      "directory", into: &worker.directory,
      as: Converter.path("a directory's path", from: directory))
    worker.user = reader.read("user", as: .account("a user's name or number"))
    worker.group = reader.read("group", as: .account("a group's name or number"))
    worker.umask = reader.read("umask", as: .umask)
    reader.section("limits") { worker.limits = LimitsReader(reader: $0).read() }
    InstanceReader(reader: reader).note()
    worker.groups = groups()
    reader.read("importance", into: &worker.importance, as: .integer(0...100))
    reader.read("autostart", into: &worker.autostart, as: .boolean)
    worker.dependsOn = DependencyReader(worker: name, reader: reader).read("depends_on")
    reader.section("shed") { worker.shed = shed($0, commands) }
    let health = HealthReader(commands: commands)
    reader.section("readiness") { worker.readiness = health.readiness($0, places: reader.places) }
    reader.section("liveness") { worker.liveness = health.liveness($0, places: reader.places) }
    reader.read("notify", into: &worker.notify, as: .boolean)
    reader.read("fdstore", into: &worker.fdstore, as: .integer(0...512))
    worker.watchdog = reader.read("watchdog", as: .watchdog)
    worker.stopCommand = commands.read("stop_command", in: reader)
    reader.read("stop_signal", into: &worker.stopSignal, as: .stopSignal)
    worker.reloadSignal = reader.read("reload_signal", as: .reloadSignal)
    RestartReader(reader: reader).read("restart", into: &worker.restart)
    output(&worker.output)
    worker.listen = ListenReader(worker: name, directory: directory, reader: reader).read("listen")
    worker.wakeAt = reader.oneOrMore("wake_at", of: .schedule).map(\.value)
    worker.wakeWith = peers()
    worker.healthChecksWhileAsleep = answers()
    reader.section("on") { section in
      worker.hooks =
        HooksReader(directory: directory, commands: commands, isOfWorker: true).read(section)
    }
    let overridden = lifecycle(&worker.policy)
    reader.finish()
    warnOfIdleKeys()
    return Result(
      worker: worker.command.isEmpty ? nil : worker, overridden: overridden)
  }

  private func namedFiles() -> [(value: String, node: YAMLNode)] {
    reader.oneOrMore("env_file", of: .path("a file's path", from: directory))
  }

  /// `env_file`, where it is read now, and `environment` laid over it; and the files that are read at each launch: those
  /// of a worker with a `user`, which could exchange them (they aren't read with the daemon's rights), and all if one
  /// doesn't answer now.
  private func ownEnvironment() -> (variables: [String: String], atLaunch: [String]) {
    var result = variables
    let files = namedFiles()
    var atLaunch = reader.position(ofKey: "user") == nil ? [] : files.map(\.value)
    for (path, node) in files where atLaunch.isEmpty {
      switch contents(of: path) {
      case nil:
        reader.sink.warning(
          at: node.position,
          "`env_file`: \(shortened(path)) can't be read now: its file system doesn't answer",
          suggestion: "it is read when the worker is launched")
        atLaunch = files.map(\.value)
        result = variables
      case .success(let text):
        let found = EnvironmentFile.parse(text, file: path)
        result.merge(found.value ?? [:]) { $1 }
        reader.sink.add(found.diagnostics)
      case .failure(let problem):
        reader.sink.error(
          at: node.position, "`env_file`: \(shortened(path)): \(problem.diagnostic.message)")
      }
    }
    if let shape = reader.shape {
      shape.add("environment", .named(.either([.text, .nothing]), names: "^[^=]+$"))
    }
    if let node = reader.node("environment"),
      let inner = reader.reader(of: node, called: "environment")
    {
      result.merge(EnvironmentReader(reader: inner).read()) { $1 }
    }
    return (result, atLaunch)
  }

  /// nil: its file system doesn't answer.
  private func contents(of path: String) -> Swift.Result<String, Unreadable>? {
    let found = Found()
    let isRead = wait(FilePaths.directory(of: path)) {
      let text = FileContents.read(path)
      found.text.withLock { $0 = text }
    }
    return isRead ? found.text.withLock { $0 } : nil
  }

  private final class Found: Sendable {
    let text = Mutex<Swift.Result<String, Unreadable>?>(nil)
  }

  private func shed(
    _ reader: MappingReader, _ commands: CommandReader
  ) -> WorkerConfiguration.Shed? {
    let signal = reader.read("signal", as: .shedSignal)
    let command = commands.read("command", in: reader)
    let notify = reader.read("notify", as: .boolean)
    let request = HealthReader(commands: commands).shedRequest(reader)
    reader.one(
      of: ["signal", "command", "http", "notify"], example: "signal: USR1", self.reader.places)
    if let signal { return .signal(signal) }
    if let command { return .command(command) }
    if let request { return .http(request) }
    return notify == true ? .notify : nil
  }

  private func output(_ output: inout WorkerOutput) {
    reader.section("output") { section in
      output.file = section.read("file", as: .path("a file's path", from: directory))
      output.maxSize = section.read("max_size", as: .size.notZero)
      section.read("keep", into: &output.keep, as: .integer(0...1_000))
      if output.maxSize == nil, let position = section.position(ofKey: "keep") {
        section.sink.error(
          at: position, "`keep` needs `max_size`: without it the log is never rotated",
          suggestion: "write `max_size: 10MB`")
      }
    }
  }

  private func peers() -> [String] {
    let names = reader.list("wake_with", of: .name("the name of a worker")) ?? []
    return reader.unique(names.map { ($0.value, $0.value, $0.node) })
  }

  /// `groups`, a name or a list of names.
  private func groups() -> [String] {
    let names = reader.oneOrMore("groups", of: .name("a group's name"))
    return reader.unique(names.map { ($0.value, $0.value, $0.node) })
  }

  private func answers() -> [AsleepAnswer] {
    let found = reader.oneOrMore("health_checks_while_asleep", of: .asleepAnswer)
    _ = reader.unique(found.map { ($0.value, $0.value.text, $0.node) })
    return found.map(\.value)
  }

  /// `policy`, and `stop_grace`, which is another name for one of its keys.
  private func lifecycle(_ policy: inout LifecyclePolicy) -> [String: Position] {
    var overridden: [String: Position] = [:]
    if let overrides = reader.overrides("policy", scope: .worker) {
      policy = PolicyReader(scope: .worker).read(overrides, over: policy)
      overridden = overrides.places.settings
    }
    let key = "terminate.grace"
    if let grace = reader.read("stop_grace", as: .duration) {
      policy.terminate.grace = grace
      if let other = overridden[key] {
        reader.sink.error(
          at: reader.position(ofKey: "stop_grace"),
          "`stop_grace` is `policy.\(key)`, which is in line \(other.line)",
          suggestion: "leave one of them out")
      }
      overridden[key] = reader.position(ofKey: "stop_grace")
    }
    return overridden
  }

  private func warnOfIdleKeys() {
    let idle = reader.places.keys.filter { WorkerConfiguration.notYetEffective.contains($0.key) }
    // A probe is reported once, not with each of its numbers.
    let hasProbe = idle.keys.contains {
      ["exec", "httpGet", "tcpSocket"].contains($0.dropFirst(10))
    }
    for (path, position) in idle.sorted(by: { $0.value < $1.value }) {
      if hasProbe, path.hasSuffix("Seconds") || path.hasSuffix("Threshold") { continue }
      reader.sink.warning(
        at: position, "`\(path)` has no effect in this version")
    }
  }
}

extension MappingReader {
  /// Two ways for one purpose would leave open which of them counts.
  ///
  /// - Parameter outer: where this section itself stands.
  func one(of keys: [String], example: String, _ outer: Places) {
    let there = keys.filter { position(ofKey: $0) != nil }
    if there.count > 1, let last = there.compactMap({ position(ofKey: $0) }).max() {
      sink.error(at: last, "only one of \(listed(keys)) can be chosen")
    }
    if order.isEmpty {
      sink.error(
        at: own ?? outer[path], "this needs one of \(listed(keys))",
        suggestion: "write `{ \(example) }`")
    }
  }

  /// A value, or a list of such values.
  func oneOrMore<Item>(
    _ key: String, of converter: Converter<Item>
  ) -> [(value: Item, node: YAMLNode)] {
    if let shape {
      shape.add(key, .either([converter.shape, .list(converter.shape)]))
      return []
    }
    guard let node = node(key) else { return [] }
    guard case .sequence(let items) = node else {
      return convert(node, called: key, as: converter).map { [($0, node)] } ?? []
    }
    return items.compactMap { item in
      convert(item, called: key, as: converter).map { ($0, item) }
    }
  }
}

extension Converter where Value == String {
  /// A user or group, as /etc/passwd allows them, or a number. Whether there is one isn't looked up:
  /// a configuration is checked on other machines, too.
  static func account(_ expects: String) -> Converter {
    .scalar(expects) { text in
      let isName = text.utf8.allSatisfy {
        $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "/")
      }
      return !text.isEmpty && text.utf8.count <= 256 && isName && !text.hasPrefix("-")
        ? .success(text) : .failure(.wrongKind)
    }
  }
}

extension Converter where Value == UInt32 {
  /// As umask(1) takes it. Octal, whatever YAML makes of a leading zero.
  fileprivate static var umask: Converter {
    .scalar(
      "octal permission bits such as `022`",
      // To editors, digits without quotes are a number.
      shape: .either([.matching("^(0o)?[0-7]{1,4}$", example: "022"), .whole(0...777)])
    ) { text in
      let digits = text.hasPrefix("0o") ? text.dropFirst(2) : text[...]
      guard (1...4).contains(digits.utf8.count), digits.allSatisfy({ ("0"..."7").contains($0) }),
        let bits = UInt32(digits, radix: 8), bits <= 0o777
      else { return .failure(.wrongKind) }
      return .success(bits)
    }
  }
}

extension Converter where Value == CalendarSchedule {
  fileprivate static var schedule: Converter {
    .scalar("a line of cron such as `0 3 * * *`") { text in
      do throws(ScheduleError) {
        return .success(try CalendarSchedule(parsing: text))
      } catch {
        return .failure(
          Problem(message: error.message, suggestion: error.suggestion, offset: error.offset))
      }
    }
  }
}
