import Glibc
import Policy

/// The keys of `readiness`, `liveness` and `shed`.
enum HealthKeys {
  static var readiness: Key<WorkerConfiguration> {
    Key<WorkerConfiguration>(
      "readiness", \.readinessKeys, usual: Readiness(nil),
      about: "when the worker is ready; without this key, at once", check: check
    ) {
      Key<Readiness>(
        "notify", \.notify, as: .boolean,
        about: "`true`: the worker sends `READY=1` to NOTIFY_SOCKET")
      Key<Readiness>(
        "notification_fd", \.descriptor, as: .integer(3...1_023),
        about: "the worker writes a line to this descriptor (s6), 3 to 1023")
      Key<Readiness>(
        "log_line", \.line,
        as: Converter.text("a part of a line of output").checked { $0.isEmpty ? .wrongKind : nil }
          .escaped,
        about: "a line of the worker's output contains this text")
      Key<Readiness>(
        "log_pattern", \.pattern, as: .pattern.escaped,
        about: "a whole line of the worker's output matches this extended regular expression")
      Key<Readiness>(
        "tcp", \.tcp, as: .port, about: "this port accepts a connection, 1 to 65535")
      ProbeKeys.all.map { $0.at(\.probe) }
    }
  }

  static var liveness: Key<WorkerConfiguration> {
    Key<WorkerConfiguration>(
      "liveness", \.livenessKeys, usual: Probe.nothing,
      about: "asked while the worker is awake; see [Liveness](#liveness)", check: check
    ) { ProbeKeys.all }
  }

  static var shed: Key<WorkerConfiguration> {
    Key<WorkerConfiguration>(
      "shed", \.shedKeys, usual: Shed(nil), about: "how the worker is asked to free memory",
      check: { inner, _ in
        inner.one(of: ["signal", "command", "http", "notify"], example: "signal: USR1")
      }
    ) {
      Key<Shed>(
        "signal", \.signal, as: .caughtSignal,
        about: "a signal. It is sent only if the worker has a handler for it")
      Key<Shed>(
        "command", command: \.command, about: "a command to run: the program and its arguments")
      Key<Shed>(
        "notify", \.notify, as: .boolean,
        about: "`true`: only through systemd's MEMORY_PRESSURE_WATCH")
      Key<Shed>(
        "http", \.request, usual: Shed.noRequest,
        about: "a request to send. A status from 200 to 299 means that the memory is free",
        check: { inner, _ in inner.need("port") }
      ) {
        Key<Probe.HTTPRequest>("method", \.method, as: .method, about: "default: POST")
        ProbeKeys.request
      }
    }
  }

  private static func check(_ reader: MappingReader, _ readiness: inout Readiness) {
    refuseHTTP(reader)
    reader.one(
      of: ["notify", "notification_fd", "tcp", "log_line", "log_pattern"] + ProbeKeys.actions,
      example: "notify: true")
    let hasTimings = ProbeKeys.timings.contains { reader.position(ofKey: $0) != nil }
    guard let port = readiness.tcp else { return needsAction(reader) }
    // `tcp: 8080` alone is the older form, whose probes are more frequent.
    if hasTimings { readiness.probe.action = .tcp(host: Probe.loopback, port: port) }
  }

  private static func check(_ reader: MappingReader, _ probe: inout Probe) {
    refuseHTTP(reader)
    reader.one(of: ProbeKeys.actions, example: "httpGet: { path: /healthz, port: 8080 }")
    needsAction(reader)
    if !probe.isNothing, probe.successThreshold != 1 {
      reader.sink.error(
        at: reader.positions[reader.path(of: "successThreshold")],
        "`successThreshold` must be 1 for `liveness`")
    }
  }

  /// Reports timings without an action.
  private static func needsAction(_ reader: MappingReader) {
    guard !(ProbeKeys.actions + ["tcp"]).contains(where: { reader.position(ofKey: $0) != nil }),
      let first = ProbeKeys.timings.compactMap({ reader.position(ofKey: $0) }).min()
    else { return }
    reader.sink.error(
      at: first, "this key needs a probe, and there is none",
      suggestion: "add `httpGet: { path: /healthz, port: 8080 }`, `exec` or `tcpSocket`")
  }

  private static func refuseHTTP(_ reader: MappingReader) {
    guard let position = reader.refused("http") else { return }
    reader.sink.error(
      at: position, "unknown key `http` in `\(shortened(reader.title))`",
      suggestion: "write `httpGet: { path: /healthz, port: 8080 }`, as Kubernetes does")
  }

  /// The values of the keys of `readiness`.
  fileprivate struct Readiness {
    var notify: Bool?
    var descriptor: Int?
    var line: String?
    var pattern: String?
    var tcp: UInt16?
    var probe = Probe.nothing

    init(_ readiness: ReadinessRule?) {
      switch readiness {
      case .notify: notify = true
      case .notificationDescriptor(let number): descriptor = Int(number)
      case .tcp(let port): tcp = port
      case .logLine(let text): line = text
      case .logPattern(let text): pattern = text
      case .probe(let value): probe = value
      case nil: break
      }
    }

    var value: ReadinessRule? {
      if let descriptor { return .notificationDescriptor(Int32(descriptor)) }
      if let line { return .logLine(line) }
      if let pattern { return .logPattern(pattern) }
      if !probe.isNothing { return .probe(probe) }
      if let tcp { return .tcp(tcp) }
      return notify == true ? .notify : nil
    }
  }

  /// The values of the keys of `shed`.
  fileprivate struct Shed {
    var signal: Int32?
    var command: [String] = []
    var notify: Bool?
    var request = Self.noRequest

    static var noRequest: Probe.HTTPRequest {
      var request = Probe.HTTPRequest(port: 0)
      (request.method, request.successes) = ("POST", 200...299)
      return request
    }

    init(_ shed: WorkerConfiguration.Shed?) {
      switch shed {
      case .signal(let number): signal = number
      case .command(let arguments): command = arguments
      case .http(let value): request = value
      case .notify: notify = true
      case nil: break
      }
    }

    var value: WorkerConfiguration.Shed? {
      if let signal { return .signal(signal) }
      if !command.isEmpty { return .command(command) }
      if request.port != 0 { return .http(request) }
      return notify == true ? .notify : nil
    }
  }
}

extension WorkerConfiguration {
  fileprivate var readinessKeys: HealthKeys.Readiness {
    get { HealthKeys.Readiness(readiness) }
    set { readiness = newValue.value }
  }

  fileprivate var livenessKeys: Probe {
    get { liveness ?? .nothing }
    set { liveness = newValue.isNothing ? nil : newValue }
  }

  fileprivate var shedKeys: HealthKeys.Shed {
    get { HealthKeys.Shed(shed) }
    set { shed = newValue.value }
  }
}

extension Converter where Value == String {
  /// An extended regular expression that the C library can compile.
  fileprivate static var pattern: Converter {
    .text("an extended regular expression").checked { text in
      guard !text.isEmpty else { return .wrongKind }
      // The C library accepts back-references nevertheless, and can need hours for one line of a
      // worker's output.
      if hasBackReference(text) {
        return Problem(
          message: "has a back-reference (`\\1`), which extended regular expressions don't have",
          suggestion: "write the text again, or use `log_line`")
      }
      var compiled = regex_t()
      let code = regcomp(&compiled, text, REG_EXTENDED | REG_NOSUB)
      guard code != 0 else {
        regfree(&compiled)
        return nil
      }
      var buffer = [CChar](repeating: 0, count: 200)
      regerror(code, &compiled, &buffer, buffer.count)
      let reason = String(
        decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      return Problem(
        message: "isn't a regular expression: \(reason)",
        suggestion: "`log_line` searches for plain text")
    }
  }

  /// Returns true if the text has a backslash, not escaped by another, before a digit from 1 to 9.
  private static func hasBackReference(_ text: String) -> Bool {
    var isQuoted = false
    for byte in text.utf8 {
      if isQuoted, UInt8(ascii: "1")...UInt8(ascii: "9") ~= byte { return true }
      isQuoted = !isQuoted && byte == UInt8(ascii: "\\")
    }
    return false
  }
}
