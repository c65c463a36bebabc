import Glibc
import Policy
import YAML

/// Reads `readiness:` and `liveness:`. The probes have Kubernetes' names, so that they can be copied.
struct HealthReader {
  func readiness(_ reader: MappingReader) -> WorkerConfiguration.Readiness? {
    let notify = reader.read("notify", as: .boolean)
    let descriptor = reader.read("notification_fd", as: .integer(3...1_023))
    let line = reader.read(
      "log_line",
      as: Converter.text("a part of a line of output").checked { $0.isEmpty ? .wrongKind : nil })
    let pattern = reader.read("log_pattern", as: .pattern)
    let port = reader.read("tcp", as: .port)
    let probe = self.probe(reader, port: port)
    refuseHTTP(reader)
    reader.one(
      of: ["notify", "notification_fd", "tcp", "log_line", "log_pattern"] + Self.actions,
      example: "notify: true")
    if reader.position(ofKey: "tcp") == nil { needsAction(reader) }
    if let descriptor { return .notificationDescriptor(Int32(descriptor)) }
    if let line { return .logLine(line) }
    if let pattern { return .logPattern(pattern) }
    if let probe { return .probe(probe) }
    if let port { return .tcp(UInt16(port)) }
    return notify == true ? .notify : nil
  }

  func liveness(_ reader: MappingReader) -> Probe? {
    let probe = self.probe(reader, port: nil)
    refuseHTTP(reader)
    reader.one(of: Self.actions, example: "httpGet: { path: /healthz, port: 8080 }")
    needsAction(reader)
    if let probe, probe.successThreshold != 1 {
      reader.sink.error(
        at: reader.places[reader.path(of: "successThreshold")],
        "`successThreshold` must be 1 for `liveness`")
    }
    return probe
  }

  func shed(_ reader: MappingReader) -> WorkerConfiguration.Shed? {
    let signal = reader.read("signal", as: .shedSignal)
    let command = reader.commands.read("command", in: reader)
    let notify = reader.read("notify", as: .boolean)
    let request = shedRequest(reader)
    reader.one(of: ["signal", "command", "http", "notify"], example: "signal: USR1")
    if let signal { return .signal(signal) }
    if let command { return .command(command) }
    if let request { return .http(request) }
    return notify == true ? .notify : nil
  }

  /// `http` in `shed`: as `httpGet`, with a method.
  private func shedRequest(_ reader: MappingReader) -> Probe.HTTPRequest? {
    var found: Probe.HTTPRequest?
    reader.section("http") { section in
      let method = section.read("method", as: .method)
      found = request(section)
      found?.method = method ?? "POST"
      found?.successes = 200...299
      need("port", in: section)
    }
    return found
  }

  private static let actions = ["exec", "httpGet", "tcpSocket"]
  private static let timings = [
    "initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold",
    "failureThreshold",
  ]

  private func probe(_ reader: MappingReader, port: Int?) -> Probe? {
    var action = port.map { Probe.Action.tcp(host: Self.loopback, port: UInt16($0)) }
    reader.section("exec") { section in
      if let command = section.commands.read("command", in: section) { action = .exec(command) }
      need("command", in: section)
    }
    reader.section("httpGet") { section in
      if let request = request(section) { action = .http(request) }
      need("port", in: section)
    }
    reader.section("tcpSocket") { section in
      let host = section.read("host", as: .text("a host")) ?? Self.loopback
      if let port = section.read("port", as: .port) {
        action = .tcp(host: host, port: UInt16(port))
      }
      need("port", in: section)
    }
    var probe = Probe(action ?? .exec([]))
    let hasTimings = timings(reader, &probe)
    // `tcp: 8080` alone is older, and asked more often.
    guard action != nil, port == nil || hasTimings else { return nil }
    return probe
  }

  private static let loopback = "127.0.0.1"

  private func timings(_ reader: MappingReader, _ probe: inout Probe) -> Bool {
    let seconds = { (least: Int) in
      Converter<Int>.integer(least...86_400).map { Duration.seconds($0) }
    }
    reader.read("initialDelaySeconds", into: &probe.initialDelay, as: seconds(0))
    reader.read("periodSeconds", into: &probe.period, as: seconds(1))
    reader.read("timeoutSeconds", into: &probe.timeout, as: seconds(1))
    reader.read("successThreshold", into: &probe.successThreshold, as: .integer(1...1_000))
    reader.read("failureThreshold", into: &probe.failureThreshold, as: .integer(1...1_000))
    return Self.timings.contains { reader.position(ofKey: $0) != nil }
  }

  private func request(_ reader: MappingReader) -> Probe.HTTPRequest? {
    let path = reader.read(
      "path",
      as: Converter.text("a path such as `/healthz`").checked {
        $0.hasPrefix("/") && !$0.contains(where: \.isWhitespace) ? nil : .wrongKind
      })
    let host = reader.read("host", as: .text("a host"))
    reader.read("scheme", as: .scheme)
    let headers = reader.list("httpHeaders", of: .header)?.map(\.value)
    guard let port = reader.read("port", as: .port) else { return nil }
    return Probe.HTTPRequest(
      host: host ?? Self.loopback, port: UInt16(port), path: path ?? "/", headers: headers ?? [])
  }

  private func need(_ key: String, in reader: MappingReader) {
    guard reader.shape == nil, reader.position(ofKey: key) == nil else { return }
    reader.sink.error(at: reader.own, "`\(reader.title.lastPart)` needs `\(key)`")
  }

  /// Timings, and nothing to ask.
  private func needsAction(_ reader: MappingReader) {
    guard !Self.actions.contains(where: { reader.position(ofKey: $0) != nil }),
      let first = Self.timings.compactMap({ reader.position(ofKey: $0) }).min()
    else { return }
    reader.sink.error(
      at: first, "this key needs a probe, and there is none",
      suggestion: "add `httpGet: { path: /healthz, port: 8080 }`, `exec` or `tcpSocket`")
  }

  private func refuseHTTP(_ reader: MappingReader) {
    guard let position = reader.refused("http") else { return }
    reader.sink.error(
      at: position, "unknown key `http` in `\(shortened(reader.title))`",
      suggestion: "write `httpGet: { path: /healthz, port: 8080 }`, as Kubernetes does")
  }
}

extension MappingReader {
  /// For values that say nothing beyond being right.
  fileprivate func read(_ key: String, as converter: Converter<Void>) {
    let _: Void? = read(key, as: converter)
  }
}

extension String {
  fileprivate var lastPart: String { split(separator: ".").last.map(String.init) ?? self }
}

extension Converter where Value == String {
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
      expects: "a list of `{ name: X-Check, value: yes }`", shape: .mapping(keys)
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
