import Foundation
import Glibc

/// A small HTTP client. It sends one request on each connection, with exactly the headers that a
/// test names.
struct WebClient {
  let port: UInt16

  struct Answer {
    var status: Int
    /// The headers, by names in lower case.
    var headers: [String: String]
    var body: String
  }

  func get(_ path: String, _ headers: [String: String] = [:]) throws -> Answer {
    try request("GET", path, headers)
  }

  /// - Parameter host: The value of the header. nil means 127.0.0.1 and the port; an empty text
  ///   means no such header.
  func request(
    _ method: String, _ path: String, _ headers: [String: String] = [:], host: String? = nil
  ) throws -> Answer {
    let stream = try open(method, path, headers, host: host, closes: true)
    defer { close(stream) }
    return try Self.parse(try Self.read(stream, until: { _ in false }))
  }

  /// Returns the text of a stream when `isEnough` is true of it.
  func stream(
    _ path: String, _ headers: [String: String], limit: Duration = .seconds(90),
    until isEnough: (String) -> Bool
  ) throws -> String {
    let stream = try open("GET", path, headers, closes: false)
    defer { close(stream) }
    return try Self.read(stream, limit, until: isEnough)
  }

  /// Returns a stream that stays open, when enough has arrived. The dashboard closes a connection
  /// whose token it hasn't checked within 10 s (`ConnectionGuard`). A busy machine may need longer
  /// for that, and then the connection is opened again.
  func openStream(
    _ path: String, _ headers: [String: String], until isEnough: (String) -> Bool
  ) throws -> Int32 {
    var text = ""
    for _ in 0..<6 {
      let stream = try open("GET", path, headers, closes: false)
      text = try Self.read(stream, until: isEnough)
      if isEnough(text) { return stream }
      close(stream)
    }
    throw Failure("the dashboard closes the stream each time; at last after: \(text.suffix(2000))")
  }

  func open(
    _ method: String, _ path: String, _ headers: [String: String], host: String? = nil, closes: Bool
  ) throws -> Int32 {
    // Foundation's `Process` closes only descriptors that were open when it checked. A program that
    // another test starts at that moment would keep the connection open, and the dashboard wouldn't
    // notice its end.
    let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(file, $0, size) }
    }
    guard result == 0 else {
      close(file)
      throw Failure("connect: errno \(errno)")
    }
    var lines = ["\(method) \(path) HTTP/1.1"]
    let host = host ?? "127.0.0.1:\(port)"
    if !host.isEmpty { lines.append("Host: \(host)") }
    if closes { lines.append("Connection: close") }
    if method == "POST" { lines.append("Content-Length: 0") }
    lines += headers.map { "\($0.key): \($0.value)" }
    let text = lines.joined(separator: "\r\n") + "\r\n\r\n"
    guard send(file, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count else {
      close(file)
      throw Failure("send: errno \(errno)")
    }
    return file
  }

  static func read(
    _ file: Int32, _ limit: Duration = .seconds(90), until isEnough: (String) -> Bool
  ) throws -> String {
    let deadline = ContinuousClock.now + limit
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while ContinuousClock.now < deadline {
      var entry = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, 200) > 0 else { continue }
      let count = Glibc.read(file, &buffer, buffer.count)
      if count <= 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += buffer.prefix(count)
      let text = String(decoding: bytes, as: UTF8.self)
      if isEnough(text) { return text }
    }
    throw Failure(
      "no answer within \(limit); so far: \(String(decoding: bytes.suffix(2000), as: UTF8.self))")
  }

  private static func parse(_ text: String) throws -> Answer {
    let parts = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
    let lines = (parts.first ?? "").split(separator: "\r\n")
    guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else {
      throw Failure("no answer: \(text)")
    }
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      let pair = line.split(separator: ":", maxSplits: 1)
      guard pair.count == 2 else { continue }
      headers[pair[0].lowercased()] = pair[1].trimmingCharacters(in: .whitespaces)
    }
    return Answer(status: status, headers: headers, body: parts.count > 1 ? String(parts[1]) : "")
  }
}
