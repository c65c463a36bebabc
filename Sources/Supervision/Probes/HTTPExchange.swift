import Policy

/// An HTTP request, and the part of its response that is used: the status. The remainder of the
/// response is still read, up to a limit, so that the server doesn't see a hang-up.
struct HTTPExchange {
  let path: String
  let successes: ClosedRange<Int>
  let request: [UInt8]
  /// The status of the response. It is nil until the first line has arrived, and if that line isn't
  /// HTTP.
  var status: Int? { response.status == 0 ? nil : response.status }
  /// True when nothing more has to be read.
  private(set) var isComplete = false
  private var response = HTTPResponse()
  private var received = 0

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
    if probe.method != "GET" { add("Content-Length", "0") }
    let lines = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
    request = Array("\(probe.method) \(probe.path) HTTP/1.1\r\n\(lines)\r\n".utf8)
  }

  mutating func receive(_ bytes: [UInt8]) {
    received += bytes.count
    // What isn't HTTP after the status doesn't change the verdict.
    let isRead = (try? response.feed(bytes[...])) != nil
    isComplete = !isRead || response.isComplete || received >= Self.limit
  }
}
