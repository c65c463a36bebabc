import CLinux
import Glibc
import Linux
import WorkerProtocol

/// A worker's end of `DORMOUSE_WORKER_SOCKET`, in the test's own process.
final class WorkerSocketPeer {
  private let socket: Descriptor
  private var received: [UInt8] = []
  private var isAtEnd = false

  init(_ path: String) throws { socket = try UnixSocket.connected(to: path, .stream) }

  func say(_ messages: WorkerMessage...) throws {
    for message in messages {
      try socket.writeAll(String(decoding: message.line, as: UTF8.self) + "\n")
    }
  }

  func say(_ message: WorkerMessage, passing descriptor: Descriptor) throws {
    let bytes = message.line + [UInt8(ascii: "\n")]
    try shim("sendmsg") {
      clinux_send_with_descriptor(socket.raw, bytes, Int64(bytes.count), descriptor.raw)
    }
  }

  func hangUp() { shutdown(socket.raw, Int32(SHUT_RDWR)) }

  /// Returns the messages that have arrived since the last call.
  func hear() throws -> [DaemonMessage] {
    receive()
    var messages: [DaemonMessage] = []
    while let end = received.firstIndex(of: UInt8(ascii: "\n")) {
      if let message = try DaemonMessage.read(Array(received[..<end])) { messages.append(message) }
      received.removeSubrange(...end)
    }
    return messages
  }

  /// Whether the daemon has closed the connection.
  var isClosed: Bool {
    receive()
    return isAtEnd
  }

  private func receive() {
    let arrived = socket.arrived()
    received += arrived.bytes
    isAtEnd = arrived.isAtEnd
  }
}

extension Descriptor {
  /// Reads what has arrived at a socket, without waiting: the daemon runs on the same thread.
  func arrived() -> (bytes: [UInt8], isAtEnd: Bool) {
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
    while true {
      let count = Glibc.recv(raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { return (bytes, false) }
      // If a socket is closed while it has unread bytes, its other end gets ECONNRESET.
      if count <= 0 { return (bytes, true) }
      bytes += buffer[..<count]
    }
  }
}

extension [DaemonMessage] {
  /// The requests that want an answer: number, seconds, and request.
  var requests: [(id: UInt64, seconds: Double, request: DaemonMessage.Request)] {
    compactMap {
      if case .request(let id, let seconds, let request) = $0 {
        (id, seconds, request)
      } else {
        nil
      }
    }
  }
}

/// Purgeable memory as a worker offers it: one slot, with content that may be purged.
struct OfferedMemory {
  let descriptor: Descriptor
  /// The size of the content, in bytes.
  let bytes: Int64

  init(pages: Int = 4, isSealed: Bool = true) throws {
    let page = Int(pageSize)
    bytes = Int64(pages * page)
    let size = Int64(page) + bytes
    let seals = isSealed ? Int32(CLINUX_SEAL_SHRINK) | Int32(CLINUX_SEAL_GROW) : 0
    descriptor = Descriptor(
      owning: try shim("memfd_create") {
        clinux_sealed_memory_file("purgeable", size, seals)
      })
    try write([PurgeableLayout.magic], at: 0)
    try write([UInt32(1), UInt32(page)], at: PurgeableLayout.slotCountOffset)
    let slot = PurgeableLayout.offset(ofSlot: 0)
    try write([UInt64(page), UInt64(bytes)], at: slot + PurgeableLayout.contentOffsetOffset)
    try write([UInt8](repeating: 1, count: Int(bytes)), at: page)
    try setState(PurgeableState(generation: 1, accesses: 0))
  }

  func setState(_ state: PurgeableState) throws {
    try write(
      [state.rawValue], at: PurgeableLayout.offset(ofSlot: 0) + PurgeableLayout.stateOffset)
  }

  private func write<Number>(_ numbers: [Number], at offset: Int) throws {
    try numbers.withUnsafeBytes { bytes in
      _ = try systemCall("pwrite") {
        pwrite(descriptor.raw, bytes.baseAddress, bytes.count, off_t(offset))
      }
    }
  }
}
