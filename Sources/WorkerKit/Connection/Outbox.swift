import CWorkerKit

/// Lines that the socket hasn't accepted yet.
struct Outbox {
  private struct Line {
    var bytes: [UInt8]
    var sent = 0
    /// A descriptor that is sent with the line's first byte, or -1. The outbox doesn't close it.
    var descriptor: Int32
  }

  /// If more than this many bytes wait, the daemon counts as dead and the connection is ended.
  static let maxBytes = 8 << 20

  private var lines: [Line] = []
  private var first = 0
  private(set) var waitingBytes = 0

  var isEmpty: Bool { first == lines.count }

  /// - Parameter line: The line without its line end.
  mutating func append(_ line: [UInt8], descriptor: Int32 = -1) {
    lines.append(Line(bytes: line + [UInt8(ascii: "\n")], descriptor: descriptor))
    waitingBytes += line.count + 1
  }

  mutating func removeAll() { self = Outbox() }

  /// Sends as much as the socket accepts. The result is false if the socket is broken.
  mutating func flush(to socket: Int32) -> Bool {
    while first < lines.count {
      let sent = lines[first].bytes.withUnsafeBytes { bytes in
        let remaining = UnsafeRawBufferPointer(rebasing: bytes[lines[first].sent...])
        return workerkit_send(
          socket, remaining.baseAddress, Int64(remaining.count), lines[first].descriptor)
      }
      if sent == -Int64(workerkit_again) { return true }
      guard sent > 0 else { return false }
      waitingBytes -= Int(sent)
      lines[first].sent += Int(sent)
      lines[first].descriptor = -1
      if lines[first].sent == lines[first].bytes.count { first += 1 }
    }
    removeAll()
    return true
  }
}
