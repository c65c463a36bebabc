import Glibc
import Policy
import YAML

/// The keys of `readiness`, `liveness` and `shed`. The probes have Kubernetes' names, so that they can be copied.
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
      probe.map { $0.at(\.probe) }
    }
  }

  static var liveness: Key<WorkerConfiguration> {
    Key<WorkerConfiguration>(
      "liveness", \.livenessKeys, usual: Probe.nothing,
      about: "asked while the worker is awake; see [Liveness](#liveness)", check: check
    ) { probe }
  }

  static var shed: Key<WorkerConfiguration> {
    Key<WorkerConfiguration>(
      "shed", \.shedKeys, usual: Shed(nil), about: "how the worker is asked to free memory",
      check: { inner, _ in
        inner.one(of: ["signal", "command", "http", "notify"], example: "signal: USR1")
      }
    ) {
      Key<Shed>(
        "signal", \.signal, as: .shedSignal,
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
        request
      }
    }
  }

  fileprivate static let actions = ["exec", "httpGet", "tcpSocket"]
  fileprivate static let timings = [
    "initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold",
    "failureThreshold",
  ]

  @KeyList<Probe> private static var probe: [Key<Probe>] {
    Key<Probe>(
      "exec", about: "a command. Exit status 0 is success",
      check: { inner, _ in inner.need("command") }
    ) {
      Key<Probe>("command", command: \.words, about: "the program and its arguments")
    }
    Key<Probe>(
      "httpGet", \.request, usual: Probe.nothing.request,
      about: "a request. A status from 200 to 399 is success",
      check: { inner, _ in inner.need("port") }
    ) { request }
    Key<Probe>(
      "tcpSocket", \.place, usual: Probe.nothing.place,
      about: "a port. A connection is success", check: { inner, _ in inner.need("port") }
    ) {
      Key<Probe.Place>(
        "host", \.host, as: .text("a host").escaped,
        about: "an address, or localhost. Default: 127.0.0.1")
      Key<Probe.Place>("port", \.port, as: .port, about: "1 to 65535")
    }
    Key<Probe>(
      "initialDelaySeconds", \.initialDelay, as: .seconds(from: 0),
      about: "seconds from launch to the first question, 0 to 86400. Default: 0")
    Key<Probe>(
      "periodSeconds", \.period, as: .seconds(from: 1),
      about: "seconds from one question to the next, 1 to 86400. Default: 10")
    Key<Probe>(
      "timeoutSeconds", \.timeout, as: .seconds(from: 1),
      about: "seconds that an answer may take, 1 to 86400. Default: 1")
    Key<Probe>(
      "successThreshold", \.successThreshold, as: .integer(1...1_000),
      about: "successes in a row that are needed after a failure, 1 to 1000. Default: 1")
    Key<Probe>(
      "failureThreshold", \.failureThreshold, as: .integer(1...1_000),
      about: "failures in a row that are needed, 1 to 1000. Default: 3")
  }

  @KeyList<Probe.HTTPRequest> private static var request: [Key<Probe.HTTPRequest>] {
    Key<Probe.HTTPRequest>(
      "path", \.path,
      as: Converter.text("a path such as `/healthz`").checked {
        $0.hasPrefix("/") && !$0.contains(where: \.isWhitespace) ? nil : .wrongKind
      }.escaped, about: "default: /")
    Key<Probe.HTTPRequest>(
      "host", \.host, as: .text("a host").escaped,
      about: "an address, or localhost. Default: 127.0.0.1")
    Key<Probe.HTTPRequest>(
      "scheme", shape: Converter.scheme.shape, about: "HTTP only",
      read: { reader, _ in let _: Void? = reader.read("scheme", as: .scheme) }, write: { _ in nil })
    Key<Probe.HTTPRequest>(
      "httpHeaders", shape: .list(Converter.header.shape),
      about: "headers of the request, each with `name` and `value`",
      read: { reader, request in
        request.headers = reader.list("httpHeaders", of: .header)?.map(\.value) ?? []
      },
      write: { .list($0.headers.map(Converter.header.write)) })
    Key<Probe.HTTPRequest>("port", \.port, as: .port, about: "1 to 65535")
  }

  private static func check(_ reader: MappingReader, _ readiness: inout Readiness) {
    refuseHTTP(reader)
    reader.one(
      of: ["notify", "notification_fd", "tcp", "log_line", "log_pattern"] + actions,
      example: "notify: true")
    let hasTimings = timings.contains { reader.position(ofKey: $0) != nil }
    guard let port = readiness.tcp else { return needsAction(reader) }
    // `tcp: 8080` alone is older, and asked more often.
    if hasTimings { readiness.probe.action = .tcp(host: Probe.loopback, port: port) }
  }

  private static func check(_ reader: MappingReader, _ probe: inout Probe) {
    refuseHTTP(reader)
    reader.one(of: actions, example: "httpGet: { path: /healthz, port: 8080 }")
    needsAction(reader)
    if !probe.isNothing, probe.successThreshold != 1 {
      reader.sink.error(
        at: reader.places[reader.path(of: "successThreshold")],
        "`successThreshold` must be 1 for `liveness`")
    }
  }

  /// Timings, and nothing to ask.
  private static func needsAction(_ reader: MappingReader) {
    guard !(actions + ["tcp"]).contains(where: { reader.position(ofKey: $0) != nil }),
      let first = timings.compactMap({ reader.position(ofKey: $0) }).min()
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

  /// `readiness` as its keys.
  fileprivate struct Readiness {
    var notify: Bool?
    var descriptor: Int?
    var line: String?
    var pattern: String?
    var tcp: UInt16?
    var probe = Probe.nothing

    init(_ readiness: WorkerConfiguration.Readiness?) {
      switch readiness {
      case .notify: notify = true
      case .notificationDescriptor(let number): descriptor = Int(number)
      case .tcp(let port): tcp = port
      case .logLine(let text): line = text
      case .logPattern(let text): pattern = text
      case .probe(let found): probe = found
      case nil: break
      }
    }

    var value: WorkerConfiguration.Readiness? {
      if let descriptor { return .notificationDescriptor(Int32(descriptor)) }
      if let line { return .logLine(line) }
      if let pattern { return .logPattern(pattern) }
      if !probe.isNothing { return .probe(probe) }
      if let tcp { return .tcp(tcp) }
      return notify == true ? .notify : nil
    }
  }

  /// `shed` as its keys.
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
      case .command(let words): command = words
      case .http(let found): request = found
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

/// The action as keys: each is empty, or has the port 0, unless it is the action.
extension Probe {
  fileprivate static let loopback = "127.0.0.1"
  fileprivate static let nothing = Probe(.exec([]))
  fileprivate var isNothing: Bool { action == .exec([]) }

  fileprivate struct Place {
    var host: String
    var port: UInt16
  }

  fileprivate var words: [String] {
    get { if case .exec(let words) = action { words } else { [] } }
    set { action = .exec(newValue) }
  }

  fileprivate var request: HTTPRequest {
    get { if case .http(let request) = action { request } else { HTTPRequest(port: 0) } }
    set { if newValue.port != 0 { action = .http(newValue) } }
  }

  fileprivate var place: Place {
    get {
      if case .tcp(let host, let port) = action { return Place(host: host, port: port) }
      return Place(host: Self.loopback, port: 0)
    }
    set { if newValue.port != 0 { action = .tcp(host: newValue.host, port: newValue.port) } }
  }
}

extension MappingReader {
  /// Two ways for one purpose would leave open which of them counts.
  fileprivate func one(of keys: [String], example: String) {
    let there = keys.filter { position(ofKey: $0) != nil }
    if there.count > 1, let last = there.compactMap({ position(ofKey: $0) }).max() {
      sink.error(at: last, "only one of \(listed(keys)) can be chosen")
    }
    if order.isEmpty {
      sink.error(
        at: own ?? places[path], "this needs one of \(listed(keys))",
        suggestion: "write `{ \(example) }`")
    }
  }

  fileprivate func need(_ key: String) {
    guard position(ofKey: key) == nil else { return }
    let name = title.split(separator: ".").last ?? ""
    sink.error(at: own, "`\(name)` needs `\(key)`")
  }
}

extension Converter where Value == Duration {
  fileprivate static func seconds(from least: Int) -> Converter {
    Converter<Int>.integer(least...86_400)
      .map({ .seconds($0) }, back: { Int($0.components.seconds) })
  }
}

extension Converter where Value == String {
  /// In a file whose values may hold variables.
  fileprivate var escaped: Converter {
    Converter(expects: expects, shape: shape, write: WorkerRenderer.escaped, convert: convert)
  }

  /// Of HTTP. Not GET and HEAD, which change nothing.
  fileprivate static var method: Converter {
    let words = ["POST", "PUT", "PATCH", "DELETE"]
    return .scalar("`POST`, `PUT`, `PATCH` or `DELETE`", shape: .words(words)) { text in
      words.contains(text) ? .success(text) : .failure(.wrongKind)
    }
  }
}

extension Converter where Value == Void {
  fileprivate static var scheme: Converter {
    .scalar("`HTTP`", shape: .words(["HTTP"])) { text in
      switch text.uppercased() {
      case "HTTP": .success(())
      case "HTTPS":
        .failure(
          Problem(
            message: "can't be `HTTPS`: the daemon has no TLS",
            suggestion: "write `exec: { command: [curl, -fsk, \"https://…\"] }`"))
      default: .failure(.wrongKind)
      }
    }
  }
}

extension Converter where Value == Probe.HTTPRequest.Header {
  /// `{ name: X-Check, value: "1" }`.
  fileprivate static var header: Converter {
    let keys = MappingShape()
    keys.add("name", .text)
    keys.add("value", .text)
    keys.required = ["name", "value"]
    return Converter(
      expects: "a list of `{ name: X-Check, value: yes }`", shape: .mapping(keys),
      write: {
        .mapping([
          ("name", WorkerRenderer.escaped($0.name)), ("value", WorkerRenderer.escaped($0.value)),
        ])
      }
    ) { node in
      guard case .mapping(let mapping) = node, mapping.count == 2,
        let name = mapping["name"]?.scalar?.string, let value = mapping["value"]?.scalar?.string,
        !name.isEmpty, !(name + value).contains(where: { $0.isNewline || $0 == "\0" }),
        !name.contains(where: { $0.isWhitespace || $0 == ":" })
      else { return .failure(.wrongKind) }
      return .success(.init(name: name, value: value))
    }
  }
}

extension Converter where Value == String {
  /// An extended regular expression that the C library compiles.
  fileprivate static var pattern: Converter {
    .text("an extended regular expression").checked { text in
      guard !text.isEmpty else { return .wrongKind }
      // The C library knows them all the same, and can take hours for one line of a worker's output.
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
      var words = [CChar](repeating: 0, count: 200)
      regerror(code, &compiled, &words, words.count)
      let why = String(
        decoding: words.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      return Problem(
        message: "isn't a regular expression: \(why)",
        suggestion: "`log_line` searches for plain text")
    }
  }

  /// A backslash, not quoted by another, before a digit from 1 to 9.
  private static func hasBackReference(_ text: String) -> Bool {
    var isQuoted = false
    for byte in text.utf8 {
      if isQuoted, UInt8(ascii: "1")...UInt8(ascii: "9") ~= byte { return true }
      isQuoted = !isQuoted && byte == UInt8(ascii: "\\")
    }
    return false
  }
}
