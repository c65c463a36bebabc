import Glibc

/// One end of a channel between two processes that carries 32-bit numbers. Neither end ever waits
/// for the other.
public struct WordChannel: Sendable {
  public let descriptor: Descriptor

  public enum Arrival: Hashable, Sendable {
    case word(Int32)
    case nothing
    /// The other end is closed.
    case ended
  }

  /// Makes both ends, which are closed on execution. After a fork each process closes the end that
  /// it doesn't use.
  public static func pair() throws(SystemCallError) -> (WordChannel, WordChannel) {
    let (one, other) = try Descriptor.socketPair(.packets, isBlocking: false)
    return (WordChannel(descriptor: one), WordChannel(descriptor: other))
  }

  /// Sends a number without waiting. If the socket's buffer is full, the number is lost; that
  /// happens only if the other process hasn't read some hundred.
  public func send(_ word: Int32) {
    var word = word
    _ = Glibc.send(descriptor.raw, &word, MemoryLayout<Int32>.size, Int32(MSG_NOSIGNAL))
  }

  /// Receives the next number without waiting.
  public func receive() -> Arrival {
    var word: Int32 = 0
    while true {
      let count = kernelResult { recv(descriptor.raw, &word, MemoryLayout<Int32>.size, 0) }
      if count == MemoryLayout<Int32>.size { return .word(word) }
      if count == -Int(EAGAIN) { return .nothing }
      if count != -Int(EINTR) { return .ended }
    }
  }
}

/// Waits without limit until one of the descriptors is readable.
public func waitForInput(_ descriptors: [Descriptor]) throws(SystemCallError) {
  var entries = descriptors.map { pollfd(fd: $0.raw, events: Int16(POLLIN), revents: 0) }
  try waitForEvents(&entries, milliseconds: -1)
}

/// Makes a pipe whose ends are closed on execution and don't block.
public func unblockedPipe() throws(SystemCallError) -> (input: Descriptor, output: Descriptor) {
  var ends: [Int32] = [-1, -1]
  _ = try systemCall("pipe") { pipe(&ends) }
  for end in ends {
    _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    _ = fcntl(end, F_SETFL, O_NONBLOCK)
  }
  return (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
}
