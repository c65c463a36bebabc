import Control
import Glibc
import Linux
import TestSupport

/// Acts as an editor that uses `dormouse wrap`: it starts the wrapper with pipes, exchanges
/// messages with the helper, and waits for the end. The release of this object always ends both.
final class WrapHost {
  let scratch: Scratch
  let wrapper: SpawnedProcess
  let log: String
  private let setting: Setting
  private var input: Descriptor?
  private var output: Descriptor
  private let command: [String]
  private var received: [UInt8] = []
  private var count = 0
  private var isReaped = false

  /// The helper that is used unless a test names another.
  static let server = [TestMachine.python, TestMachine.fixture("stdio_server.py")]
  /// Options for the shortest delays until sleep.
  static let hasty = ["--idle-after", "500ms", "--hibernate-after", "100ms"]

  var pid: Int32 { wrapper.pid }
  var state: String { "\(scratch.path)/state" }
  var runtime: String { "\(scratch.path)/run" }

  /// `starter`: a program that starts the wrapper. `scratch`: another host's, whose state is
  /// shared.
  init(
    _ command: [String] = WrapHost.server, options: [String] = WrapHost.hasty,
    setting: Setting = .traced, starter: [String] = [], scratch other: Scratch? = nil
  ) throws {
    let scratch = try other ?? Scratch()
    self.scratch = scratch
    self.command = command
    self.setting = setting
    log = scratch.uniquePath("log")
    var host = Command(arguments: [])
    if setting != .frozen { host.environment["DORMOUSE_CGROUP"] = "/proc/nowhere" }
    host.environment["XDG_STATE_HOME"] = "\(scratch.path)/state"
    host.environment["XDG_RUNTIME_DIR"] = "\(scratch.path)/run"
    host.environment["MARK"] = "a mark"
    var program = [TestMachine.executable]
    var command = command
    if setting == .ordinaryUser {
      program = try TestMachine.asNobody(scratch, with: "stdio_server.py")
      let copy = "\(scratch.path)/stdio_server.py"
      command = command.map { $0 == Self.server[1] ? copy : $0 }
    }
    let arguments = starter + program + ["wrap", "--log", log] + options + ["--"] + command
    let (inputs, outputs) = (try Descriptor.pipe(), try Descriptor.pipe())
    let errors = try Descriptor.open(
      "\(scratch.path)/errors", O_RDWR | O_CREAT | O_APPEND, mode: 0o666)
    guard let first = arguments.first,
      let path = resolveExecutable(first, path: host.environment["PATH"] ?? "")
    else { throw TestFailure("\(arguments) isn't installed") }
    wrapper = try spawn(
      SpawnRequest(
        path: path, arguments: arguments, environment: host.environment, directory: scratch.path,
        input: inputs.reading.raw, output: outputs.writing.raw, error: errors.raw))
    input = inputs.writing
    output = outputs.reading
  }

  deinit {
    input = nil
    if isReaped { return }
    kill(pid, SIGKILL)
    _ = try? wrapper.wait(.seconds(60))
  }

  // MARK: talking with the helper

  func send(_ method: String, _ parameters: String = "{}") throws {
    count += 1
    let body = #"{"id": \#(count), "method": "\#(method)", "params": \#(parameters)}"#
    try send(raw: body)
  }

  func send(raw body: String) throws {
    guard let input else { throw TestFailure("its input is closed") }
    try input.writeAll("Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
  }

  /// The body of the next message.
  func receive(within limit: Duration = .seconds(60)) throws -> String {
    let deadline = Deadline(in: limit)
    while true {
      if let body = nextBody() { return body }
      guard try pollDescriptor(output.raw, for: POLLIN, until: deadline) else {
        throw TestFailure("no answer within \(limit); \(diagnostics)")
      }
      let chunk = try output.read(upTo: 65536)
      if chunk.isEmpty { throw TestFailure("it hung up; \(diagnostics)") }
      received += chunk
    }
  }

  /// The result of a request to `stdio_server.py`, as JSON.
  @discardableResult
  func ask(_ method: String, _ parameters: String = "{}") throws -> String {
    try send(method, parameters)
    let body = try receive()
    let head = #"{"id": \#(count), "result": "#
    guard body.hasPrefix(head) else { throw TestFailure("not an answer to \(method): \(body)") }
    return String(body.dropFirst(head.count).dropLast())
  }

  private func nextBody() -> String? {
    let blank = Array("\r\n\r\n".utf8)
    guard let end = received.indices.first(where: { received[$0...].starts(with: blank) }) else {
      return nil
    }
    let head = String(decoding: received[..<end], as: UTF8.self).lowercased()
    let lines = head.split(whereSeparator: \.isNewline)
    let name = "content-length: "
    let length = lines.first { $0.hasPrefix(name) }.flatMap { Int($0.dropFirst(name.count)) }
    let start = end + blank.count
    guard let length, received.count >= start + length else { return nil }
    let body = received[start..<(start + length)]
    received.removeFirst(start + length)
    return String(decoding: body, as: UTF8.self)
  }

  func closeInput() { input = nil }

  /// Closes both, as the host's death does.
  func hangUp() throws {
    input = nil
    output = try Descriptor.open("/dev/null", O_RDONLY)
  }

  /// Whether its output has ended, on both sides of the wrapper.
  func outputHasEnded() throws -> Bool {
    guard try pollDescriptor(output.raw, for: POLLIN, until: Deadline(in: .seconds(60))) else {
      return false
    }
    return try output.read(upTo: 1).isEmpty
  }

  // MARK: looking at it

  var diagnostics: String {
    "the wrapper: \((try? readText(log)) ?? "") \((try? readText("\(scratch.path)/errors")) ?? "")"
  }

  /// The helper's first process.
  func serverPid() throws -> Int32 {
    let pids = try ask("pid").split { !$0.isNumber }.compactMap { Int32($0) }
    guard let pid = pids.first else { throw TestFailure("no pid") }
    return pid
  }

  func guardianPid() throws -> Int32 {
    let guardian = children(of: pid).first { (try? ProcessStat.read($0))?.name == "dormouse-guard" }
    guard let guardian else { throw TestFailure("no guardian") }
    return guardian
  }

  /// Its name for `ps` and the verbs: the script or program, and the wrapper's pid.
  func name() -> String {
    let file = command.first { $0.hasSuffix(".py") } ?? command.first ?? ""
    let last = file.split(separator: "/").last ?? ""
    return "\(last.hasSuffix(".py") ? last.dropLast(3) : last)-\(pid)"
  }

  func status() throws -> WorkerReport {
    let sockets = "\(runtime)/dormouse/wrap"
    guard let file = try listDirectory(sockets).first(where: { $0.hasSuffix("-\(pid).sock") })
    else { throw TestFailure("no socket of it") }
    var client = try ControlClient(connectingTo: "\(sockets)/\(file)", isNamed: true)
    let worker = String(file.dropLast(5))
    let response = try client.perform(.status, worker: worker, timeout: .seconds(60))
    guard let report = response.workers?.first else { throw TestFailure(response.text) }
    return report
  }

  func wait(toBe state: String) throws {
    guard try eventually(within: .seconds(90), { (try? self.status())?.state == state }) else {
      throw TestFailure("it isn't \(state); \(diagnostics)")
    }
  }

  /// KiB of anonymous memory.
  func anonymous(_ pid: Int32) throws -> Int {
    let lines = try readText("/proc/\(pid)/status").split(separator: "\n")
    let line = lines.first { $0.hasPrefix("RssAnon:") }
    return line.flatMap { Int($0.split(whereSeparator: { !$0.isNumber })[0]) } ?? 0
  }

  /// Nothing of it is left on disk or among the cgroups.
  func hasLeftNothing() -> Bool {
    let left = (try? listDirectory("\(state)/dormouse/wrap", onlyDirectories: true)) ?? []
    let sockets = (try? listDirectory("\(runtime)/dormouse/wrap")) ?? []
    return left.isEmpty && sockets.isEmpty
  }

  // MARK: its end

  enum End: Equatable { case exited(Int32), signaled(Int32) }

  func end(within limit: Duration = .seconds(60)) throws -> End {
    guard try pollDescriptor(wrapper.pidfd.raw, for: POLLIN, until: Deadline(in: limit)) else {
      throw TestFailure("it hasn't ended; \(diagnostics)")
    }
    isReaped = true
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    return status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .signaled(status & 0x7f)
  }
}
