import Glibc
import JSONLines
import Linux
import WorkerProtocol

/// One connection of a worker to its `WorkerSocket`. It reads and writes lines, and limits what
/// they cost. An idle connection has no buffer: the buffers of a hundred workers would need more
/// memory than the daemon may use.
final class WorkerConnection {
  let descriptor: Descriptor
  private var framer = LineFramer(maximumLength: WorkerProtocol.maxLine)
  private var unsent: [UInt8] = []
  private var invalidLines = 0
  /// The lines that may still be handled: 200 per second. No more are saved up.
  private let lines = Allowance(perSecond: 200, maxSaved: 200, interval: 5_000_000)
  private let bytes: Allowance
  /// A descriptor that was received with bytes that don't make a whole line yet, or with a line
  /// that hasn't been handled yet.
  private var passed: Descriptor?
  /// The worker has closed its sending side.
  private var hasEnded = false

  /// The number of bytes that may wait for a worker that doesn't read. More close the connection.
  static let maxUnsent = 65_536
  /// The number of invalid lines after which the connection is closed.
  static let maxInvalidLines = 16
  /// What a received descriptor costs in the byte allowance. It lets about a thousand be closed per
  /// second.
  private static let costOfDescriptor = 1024
  /// The number of bytes that are read at a time, into a buffer that exists only during the call.
  private static let chunkSize = 16_384

  /// - Parameter bytes: the allowance that all connections of one worker share.
  init(_ descriptor: Descriptor, bytes: Allowance) {
    self.descriptor = descriptor
    self.bytes = bytes
  }

  var wantsToWrite: Bool { !unsent.isEmpty }

  // MARK: in

  enum Reading {
    /// Everything that was available has been read.
    case read
    /// The worker has sent too much. The remaining bytes are read a little later.
    case slowed
    case ended
    /// The daemon closes the connection. The reason is a clause.
    case mustClose(String)
  }

  /// Reads at most `chunkSize` bytes, and passes whole lines to `handle` as far as the allowance
  /// permits.
  func read(
    at now: Int64, _ handle: (WorkerMessage, Descriptor?) -> Void
  ) -> Reading {
    lines.refill(at: now)
    bytes.refill(at: now)
    // Lines of an earlier portion come first. Nothing is read before they are handled.
    var outcome = handleLines(handle)
    if case .read = outcome, !hasEnded {
      guard bytes.isLeft else { return .slowed }
      if let failure = receive() { return failure }
      outcome = handleLines(handle)
    }
    guard case .read = outcome else { return outcome }
    if framer.pendingBytes == 0 {
      // A descriptor belongs to the line with which it came. If that line doesn't use it, it is
      // closed.
      passed = nil
      framer = LineFramer(maximumLength: WorkerProtocol.maxLine)
    }
    return hasEnded ? .ended : .read
  }

  /// Returns nil if bytes were received, or none are available yet.
  private func receive() -> Reading? {
    withUnsafeTemporaryAllocation(byteCount: Self.chunkSize, alignment: 16) { buffer in
      let received: Reception?
      do throws(SystemCallError) {
        received = try Reception.receive(from: descriptor, into: buffer)
      } catch { return .ended }
      guard let received else { return nil }
      // A line can have at most one descriptor. The others are closed, which has a cost.
      if let descriptor = received.passed.last { passed = descriptor }
      bytes.use(received.passed.count * Self.costOfDescriptor)
      hasEnded = received.count == 0
      framer.append(buffer[..<received.count])
      bytes.use(received.count)
      return nil
    }
  }

  private func handleLines(_ handle: (WorkerMessage, Descriptor?) -> Void) -> Reading {
    do throws(LineFramer.Overflow) {
      while true {
        guard lines.isLeft else { return .slowed }
        guard let line = try framer.next() else { return .read }
        lines.use(1)
        if let reason = parse(line, handle) { return .mustClose(reason) }
      }
    } catch { return .mustClose("\(error)") }
  }

  /// Handles one line. Returns the reason for closing the connection, or nil to keep it.
  private func parse(_ line: [UInt8], _ handle: (WorkerMessage, Descriptor?) -> Void) -> String? {
    do throws(WorkerMessageError) {
      guard let message = try WorkerMessage.read(line) else { return nil }
      if case .hello(let version) = message, version != WorkerProtocol.version {
        let text =
          "protocol version \(version) is not supported; use \(WorkerProtocol.version)"
        _ = send(.error(message: text))
        return "it uses protocol version \(version), which is not supported"
      }
      var accompanying: Descriptor?
      if message == .purgeable { swap(&accompanying, &passed) }
      handle(message, accompanying)
      return nil
    } catch {
      return refuse("the last line can't be read: \(error)")
    }
  }

  /// Reports an invalid line to the worker. Returns the reason for closing the connection if there
  /// were too many such lines, or if the worker doesn't read.
  func refuse(_ text: String) -> String? {
    invalidLines += 1
    let isRead = send(.error(message: text))
    if invalidLines >= Self.maxInvalidLines {
      return "\(Self.maxInvalidLines) of its lines could not be read"
    }
    return isRead ? nil : Self.unread
  }

  // MARK: out

  static let unread = "it does not read its messages"

  /// Returns false if too many bytes wait already. The caller must close the connection then.
  func send(_ message: DaemonMessage) -> Bool {
    unsent += message.line
    unsent.append(UInt8(ascii: "\n"))
    return flush()
  }

  /// Writes as much as the kernel accepts. The end of a connection is noticed when it is read.
  func flush() -> Bool {
    while !unsent.isEmpty {
      let count = descriptor.send(unsent, waits: false)
      if count < 0 {
        if count == -Int(EINTR) { continue }
        if count != -Int(EAGAIN) { unsent = [] }
        break
      }
      unsent.removeFirst(count)
    }
    if unsent.isEmpty { unsent = [] }
    return unsent.count <= Self.maxUnsent
  }
}
