import Policy
import YAML

/// The keys of a probe. They have Kubernetes' names, so that probes can be copied.
enum ProbeKeys {
  static let actions = ["exec", "httpGet", "tcpSocket"]
  static let timings = [
    "initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold",
    "failureThreshold",
  ]

  @KeyList<Probe> static var all: [Key<Probe>] {
    Key<Probe>(
      "exec", about: "a command. Exit status 0 is success",
      check: { inner, _ in inner.need("command") }
    ) {
      Key<Probe>("command", command: \.command, about: "the program and its arguments")
    }
    Key<Probe>(
      "httpGet", \.request, usual: Probe.nothing.request,
      about: "a request. A status from 200 to 399 is success",
      check: { inner, _ in inner.need("port") }
    ) { request }
    Key<Probe>(
      "tcpSocket", \.tcpAddress, usual: Probe.nothing.tcpAddress,
      about: "a port. A connection is success", check: { inner, _ in inner.need("port") }
    ) {
      Key<Probe.TCPAddress>(
        "host", \.host, as: .text("a host").escaped,
        about: "an address, or localhost. Default: 127.0.0.1")
      Key<Probe.TCPAddress>("port", \.port, as: .port, about: "1 to 65535")
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

  @KeyList<Probe.HTTPRequest> static var request: [Key<Probe.HTTPRequest>] {
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
}

/// The action as keys. Each one is empty, or has the port 0, unless it is the action.
extension Probe {
  static let loopback = "127.0.0.1"
  static let nothing = Probe(.exec([]))
  var isNothing: Bool { action == .exec([]) }

  struct TCPAddress {
    var host: String
    var port: UInt16
  }

  var command: [String] {
    get { if case .exec(let arguments) = action { arguments } else { [] } }
    set { action = .exec(newValue) }
  }

  var request: HTTPRequest {
    get { if case .http(let request) = action { request } else { HTTPRequest(port: 0) } }
    set { if newValue.port != 0 { action = .http(newValue) } }
  }

  var tcpAddress: TCPAddress {
    get {
      if case .tcp(let host, let port) = action { return TCPAddress(host: host, port: port) }
      return TCPAddress(host: Self.loopback, port: 0)
    }
    set { if newValue.port != 0 { action = .tcp(host: newValue.host, port: newValue.port) } }
  }
}

extension MappingReader {
  /// Reports two keys for one purpose, because it would be unclear which of them applies.
  func one(of keys: [String], example: String) {
    let given = keys.filter { position(ofKey: $0) != nil }
    if given.count > 1, let last = given.compactMap({ position(ofKey: $0) }).max() {
      sink.error(at: last, "only one of \(listed(keys)) can be chosen")
    }
    if order.isEmpty {
      sink.error(
        at: start ?? positions[path], "this needs one of \(listed(keys))",
        suggestion: "write `{ \(example) }`")
    }
  }

  func need(_ key: String) {
    guard position(ofKey: key) == nil else { return }
    let name = title.split(separator: ".").last ?? ""
    sink.error(at: start, "`\(name)` needs `\(key)`")
  }
}

extension Converter where Value == Duration {
  fileprivate static func seconds(from minimum: Int) -> Converter {
    Converter<Int>.integer(minimum...86_400)
      .map({ .seconds($0) }, back: { Int($0.components.seconds) })
  }
}

extension Converter where Value == String {
  /// Escapes `$` when it writes, for a file whose values may contain variables.
  var escaped: Converter {
    Converter(expects: expects, shape: shape, write: WorkerRenderer.escaped, convert: convert)
  }

  /// A method of HTTP, except GET and HEAD, which change nothing.
  static var method: Converter {
    let methods = ["POST", "PUT", "PATCH", "DELETE"]
    return .scalar("`POST`, `PUT`, `PATCH` or `DELETE`", shape: .keywords(methods)) { text in
      methods.contains(text) ? .success(text) : .failure(.wrongKind)
    }
  }
}

extension Converter where Value == Void {
  fileprivate static var scheme: Converter {
    .scalar("`HTTP`", shape: .keywords(["HTTP"])) { text in
      switch text.uppercased() {
      case "HTTP": .success(())
      case "HTTPS":
        .problem(
          "can't be `HTTPS`: the daemon has no TLS",
          suggestion: "write `exec: { command: [curl, -fsk, \"https://…\"] }`")
      default: .failure(.wrongKind)
      }
    }
  }
}

extension Converter where Value == Probe.HTTPRequest.Header {
  /// A header such as `{ name: X-Check, value: "1" }`.
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
