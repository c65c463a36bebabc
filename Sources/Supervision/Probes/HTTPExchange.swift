import Policy

/// An HTTP request, and the part of its response that is used: the status. The remainder of the
/// response is still read, up to a limit, so that the server doesn't see a hang-up.
struct HTTPExchange {
  let path: String
  let successes: ClosedRange<Int>
  let request: [UInt8]
  /// The status of the response. It is nil until the first line has arrived, and if that line isn't
  /// HTTP.
  private(set) var status: Int?
  /// True when nothing more has to be read.
  private(set) var isComplete = false
  private var received: [UInt8] = []
  private var bodyStart: Int?
  private var bodyLength: Int?

  /// The number of bytes of a response that are read at most. The kubelet reads 10 KiB.
  private static let limit = 64 << 10

  init(_ probe: Probe.HTTPRequest) {
    path = probe.path
    successes = probe.successes
    var headers = probe.headers
    func add(_ name: String, _ value: String) {
      guard !headers.contains(where: { $0.name.lowercased() == name.lowercased() }) else { return }
      headers.append(.init(name: name, value: value))
    }
    let host = probe.host.contains(":") ? "[\(probe.host)]" : probe.host
    add("Host", "\(host):\(probe.port)")
    add("User-Agent", "dormouse-probe")
    add("Accept", "*/*")
    add("Connection", "close")
    let lines = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
    if probe.method != "GET" { add("Content-Length", "0") }
    request = Array("\(probe.method) \(probe.path) HTTP/1.1\r\n\(lines)\r\n".utf8)
  }

  mutating func receive(_ bytes: [UInt8]) {
    received += bytes
    if bodyStart == nil { readHead() }
    if let bodyStart, let bodyLength, received.count - bodyStart >= bodyLength { isComplete = true }
    if received.count >= Self.limit { isComplete = true }
  }

  private mutating func readHead() {
    let blank: [UInt8] = [13, 10, 13, 10]
    guard
      let end = received.indices.dropLast(3).first(where: {
        received[$0] == 13 && received[$0..<($0 + 4)].elementsEqual(blank)
      })
    else { return }
    bodyStart = end + 4
    // A CR LF is one Character.
    let lines = String(decoding: received[..<end], as: UTF8.self).split(separator: "\r\n")
    let tokens = lines.first?.split(separator: " ") ?? []
    if tokens.count >= 2, tokens[0].hasPrefix("HTTP/1."), tokens[1].count == 3 {
      status = Int(tokens[1])
    }
    if status == nil { isComplete = true }
    for line in lines.dropFirst() {
      let field = line.split(separator: ":", maxSplits: 1)
      guard field.count == 2, field[0].lowercased() == "content-length" else { continue }
      bodyLength = Int(field[1].drop { $0 == " " })
    }
    if status == 204 || status == 304 { bodyLength = 0 }
  }
}
