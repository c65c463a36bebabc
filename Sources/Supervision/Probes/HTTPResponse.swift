/// A parser of one HTTP/1.1 response, which is fed piece by piece (RFC 9112). It keeps nothing of
/// the body.
package struct HTTPResponse {
  package enum Failure: Error, Hashable { case malformed(String) }

  private enum State: Hashable {
    case head
    /// The body, with the number of bytes that are missing.
    case body(Int)
    case chunkSize, chunkEnd, trailer
    case untilClose
    case complete
  }

  private var state = State.head
  /// The line that is being read. No real response has a line longer than the limit.
  private var line: [UInt8] = []
  static let maxLine = 64 << 10
  private var isChunked = false
  private var length: Int?

  package private(set) var status = 0
  /// True if the server will close the connection, or must close it to end the response.
  package private(set) var closes = false

  package var isComplete: Bool { state == .complete }
  package var isSuccess: Bool { (200..<400).contains(status) }

  package init() {}

  package mutating func feed(_ bytes: ArraySlice<UInt8>) throws(Failure) {
    var remaining = bytes
    while let byte = remaining.first {
      switch state {
      case .complete: throw .malformed("more than one response to one request")
      case .untilClose: return
      case .body(let count):
        let consumed = min(count, remaining.count)
        remaining = remaining.dropFirst(consumed)
        state = consumed < count ? .body(count - consumed) : isChunked ? .chunkEnd : .complete
        continue
      default: break
      }
      remaining = remaining.dropFirst()
      if byte != UInt8(ascii: "\n") {
        line.append(byte)
        if line.count > Self.maxLine { throw .malformed("a line without end") }
        continue
      }
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      let text = String(decoding: line, as: UTF8.self)
      line.removeAll(keepingCapacity: true)
      try parse(text)
    }
  }

  /// Records that the server has closed the connection. Returns false if that cuts the response
  /// short.
  package mutating func end() -> Bool {
    if state == .untilClose { state = .complete }
    return isComplete
  }

  private mutating func parse(_ text: String) throws(Failure) {
    switch state {
    case .head where status == 0: try parseStatus(text)
    case .head: if text.isEmpty { endHead() } else { try parseHeader(text) }
    case .chunkSize:
      let size = text.prefix { $0 != ";" && $0 != " " }
      guard let count = Int(size, radix: 16), count >= 0 else {
        throw .malformed("the chunk length \(text.debugDescription)")
      }
      state = count == 0 ? .trailer : .body(count)
    case .chunkEnd: state = .chunkSize
    case .trailer: if text.isEmpty { state = .complete }
    case .body, .untilClose, .complete: break
    }
  }

  private mutating func parseStatus(_ text: String) throws(Failure) {
    let fields = text.split(separator: " ", maxSplits: 2)
    guard fields.count >= 2, fields[0].hasPrefix("HTTP/1."), let code = Int(fields[1]),
      (100..<600).contains(code)
    else { throw .malformed("the status line \(String(text.prefix(60)).debugDescription)") }
    status = code
    closes = fields[0] == "HTTP/1.0"
  }

  private mutating func parseHeader(_ text: String) throws(Failure) {
    guard let colon = text.firstIndex(of: ":") else { return }
    let value = text[text.index(after: colon)...].lowercased().filter { $0 != " " && $0 != "\t" }
    switch text[..<colon].lowercased() {
    case "content-length":
      guard let count = Int(value), count >= 0 else {
        throw .malformed("the length \(value.debugDescription)")
      }
      length = count
    case "transfer-encoding": isChunked = value.hasSuffix("chunked")
    case "connection":
      if value.contains("close") { closes = true }
      if value.contains("keep-alive") { closes = false }
    default: break
    }
  }

  private mutating func endHead() {
    if (100..<200).contains(status) {
      // This is an interim response; the real one follows.
      status = 0
    } else if status == 204 || status == 304 {
      state = .complete
    } else if isChunked {
      state = .chunkSize
    } else if let length {
      state = length == 0 ? .complete : .body(length)
    } else {
      state = .untilClose
      closes = true
    }
  }
}
