import Policy
import Synchronization
import YAML

/// Reads one entry of `workers:`.
struct WorkerReader {
  var name: String
  var reader: MappingReader
  /// The directory of the configuration.
  var directory: String
  /// The daemon's environment, with `variables` laid over it.
  var environment: [String: String]
  var policy: LifecyclePolicy
  /// The variables of the instance. They are in its environment, too.
  var variables: [String: String] = [:]
  var wait = ConfigurationFile.endlessly

  struct Result {
    /// The worker. `nil`: there is no command to run, which was reported.
    var worker: WorkerConfiguration?
    /// The positions of the policy's values that are this worker's own.
    var overridden: [String: Position]
  }

  func read(at position: Position?) -> Result {
    var worker = WorkerConfiguration(name: name, command: [], directory: directory, policy: policy)
    reader.directory = directory
    (worker.environment, worker.environmentFiles) = readEnvironment()
    reader.commands = CommandReader(
      variables: environment.merging(worker.environment) { $1 },
      owner: worker.environmentFiles.isEmpty
        ? "the worker" : "the worker (its `env_file` is read when it is launched)")
    if reader.position(ofKey: "command") == nil {
      reader.sink.error(
        at: position, "`\(shortened(name))` has no `command`",
        suggestion: "write `command: [program, argument]`")
    }
    WorkerKeys.all.read(reader, into: &worker)
    let overridden = readPolicy(&worker.policy)
    reader.finish()
    return Result(
      worker: worker.command.isEmpty ? nil : worker, overridden: overridden)
  }

  /// Returns the variables of `env_file`, if it is read now, with `environment` laid over them, and
  /// the files that are read at each launch. A worker with a `user` could exchange its files, so
  /// these aren't read with the daemon's rights but at each launch. If one file doesn't answer now,
  /// all are read at each launch.
  private func readEnvironment() -> (variables: [String: String], atLaunch: [String]) {
    var result = variables
    let files = reader.oneOrMore("env_file", of: .path("a file's path", from: directory))
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
        let parsed = EnvironmentFile.parse(text, file: path)
        result.merge(parsed.value ?? [:]) { $1 }
        reader.sink.add(parsed.diagnostics)
      case .failure(let problem):
        reader.sink.error(
          at: node.position, "`env_file`: \(shortened(path)): \(problem.message)")
      }
    }
    if let node = reader.node("environment"),
      let inner = reader.reader(of: node, called: "environment")
    {
      result.merge(inner.variables()) { $1 }
    }
    return (result, atLaunch)
  }

  /// Reads a file. nil: its file system doesn't answer.
  private func contents(of path: String) -> Swift.Result<String, Diagnostic>? {
    let file = FileText()
    let isRead = wait(FilePaths.directory(of: path)) {
      let text = FileContents.read(path)
      file.text.withLock { $0 = text }
    }
    return isRead ? file.text.withLock { $0 } : nil
  }

  private final class FileText: Sendable {
    let text = Mutex<Swift.Result<String, Diagnostic>?>(nil)
  }

  /// Reads `policy`, and `stop_grace`, which is another name for one of its keys.
  private func readPolicy(_ policy: inout LifecyclePolicy) -> [String: Position] {
    var overridden: [String: Position] = [:]
    if let overrides = reader.overrides("policy") {
      policy = PolicyReader(scope: .worker).read(overrides, over: policy)
      overridden = overrides.positions.settings
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
}

extension MappingReader {
  /// Reads a value, or a list of such values.
  func oneOrMore<Item>(
    _ key: String, of converter: Converter<Item>
  ) -> [(value: Item, node: YAMLNode)] {
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
  /// A user's or group's name as /etc/passwd allows it, or a number. It isn't checked whether it
  /// exists, because a configuration may be checked on another machine.
  static func account(_ expects: String) -> Converter {
    .scalar(expects, shape: ValueShape.text.called("name or number")) { text in
      let isName = text.utf8.allSatisfy {
        $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "/")
      }
      return !text.isEmpty && text.utf8.count <= 256 && isName && !text.hasPrefix("-")
        ? .success(text) : .failure(.wrongKind)
    }
  }
}

extension Converter where Value == UInt32 {
  /// An umask as umask(1) accepts it. It is octal, whatever YAML makes of a leading zero.
  static var umask: Converter {
    .scalar(
      "octal permission bits such as `022`",
      // Editors read digits without quotes as a number.
      shape: ValueShape.either([
        .matching("^(0o)?[0-7]{1,4}$", example: "022"), .whole(0...777),
      ]).called("octal digits, such as `027`"),
      write: { bits in
        let digits = String(bits, radix: 8)
        return .plain(String(repeating: "0", count: max(0, 3 - digits.count)) + digits)
      }
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
  static var schedule: Converter {
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
