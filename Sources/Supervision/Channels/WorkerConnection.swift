import CLinux
import Glibc
import JSONLines
import Linux
import WorkerProtocol

/// One connection of a worker at its `WorkerSocket`: lines in, lines out, with limits on their cost. An idle
/// connection holds no buffer: those of a hundred workers would be more than the daemon may take.
final class WorkerConnection {
  let descriptor: Descriptor
  /// The connected process, as the kernel reports it.
  let pid: Int32
  private var framer = LineFramer(maximumLength: WorkerProtocol.maxLine)
  private var waiting: [UInt8] = []
  private var senselessLines = 0
  private var allowance = LineAllowance()
  private let bytes: ByteAllowance
  /// Came with bytes that make no whole line yet, or with a line that is still to be returned.
  private var passed: Descriptor?
  /// The worker has sent all that it will send.
  private var hasEnded = false

  /// Bytes that may wait for a worker that doesn't read.
  static let maxWaiting = 65_536
  /// Lines that make no sense, after which it is shut out.
  static let maxSenseless = 16
  /// What a descriptor counts as in the allowance: a thousand a second can be closed.
  private static let bytesOfDescriptor = 1024
  /// Read at a time, into a buffer that lives as long as the call.
  private static let portion = 16_384

  /// - Parameter bytes: shared by all connections of a worker.
  init(_ descriptor: Descriptor, pid: Int32, bytes: ByteAllowance) {
    self.descriptor = descriptor
    self.pid = pid
    self.bytes = bytes
  }

  var wantsToWrite: Bool { !waiting.isEmpty }

  // MARK: in

  enum Reading {
    /// All that there was.
    case read
    /// It has sent too much: the rest is read a little later.
    case slowed
    case ended
    /// The daemon ends it, for this reason (a clause).
    case shutOut(String)
  }

  /// Reads what has come, a portion at most, and returns whole lines as far as the allowance permits.
  func read(
    at now: Int64, _ handle: (WorkerMessage, Descriptor?) -> Void
  ) -> Reading {
    allowance.refill(at: now)
    bytes.refill(at: now)
    // Lines of an earlier portion come first; nothing is read before they are returned.
    var outcome = handOut(handle)
    if case .read = outcome, !hasEnded {
      guard bytes.isLeft else { return .slowed }
      if let failure = receive() { return failure }
      outcome = handOut(handle)
    }
    guard case .read = outcome else { return outcome }
    if framer.pendingBytes == 0 {
      // A descriptor belongs to a line; a descriptor without a line, or with another line, is closed.
      passed = nil
      framer = LineFramer(maximumLength: WorkerProtocol.maxLine)
    }
    return hasEnded ? .ended : .read
  }

  /// nil: something came, or nothing yet.
  private func receive() -> Reading? {
    withUnsafeTemporaryAllocation(byteCount: Self.portion, alignment: 16) { buffer in
      let received: Reception?
      do throws(SystemCallError) {
        received = try Reception.receive(from: descriptor, into: buffer)
      } catch { return .ended }
      guard let received else { return nil }
      // A line can have one descriptor at most; the others are closed, which has a cost.
      if let descriptor = received.passed.last { passed = descriptor }
      bytes.use(received.passed.count * Self.bytesOfDescriptor)
      hasEnded = received.count == 0
      framer.append(buffer[..<received.count])
      bytes.use(received.count)
      return nil
    }
  }

  private func handOut(_ handle: (WorkerMessage, Descriptor?) -> Void) -> Reading {
    do throws(LineFramer.Overflow) {
      while true {
        guard allowance.isLeft else { return .slowed }
        guard let line = try framer.next() else { return .read }
        allowance.use()
        if let reason = parse(line, handle) { return .shutOut(reason) }
      }
    } catch { return .shutOut("\(error)") }
  }

  /// Why it is shut out; nil: it isn't.
  private func parse(_ line: [UInt8], _ handle: (WorkerMessage, Descriptor?) -> Void) -> String? {
    do throws(WorkerMessageError) {
      guard let message = try WorkerMessage.read(line) else { return nil }
      if case .hello(let version) = message, version != WorkerProtocol.version {
        let text =
          "protocol version \(version) is not supported; use \(WorkerProtocol.version)"
        _ = send(.error(message: text))
        return "it uses protocol version \(version), which is not supported"
      }
      var along: Descriptor?
      if message == .purgeable { swap(&along, &passed) }
      handle(message, along)
      return nil
    } catch {
      return refuse("the last line can't be read: \(error)")
    }
  }

  /// Reports to the worker what was wrong with a line. Returns why it is shut out, if this was one too many.
  func refuse(_ text: String) -> String? {
    senselessLines += 1
    let isRead = send(.error(message: text))
    if senselessLines >= Self.maxSenseless {
      return "\(Self.maxSenseless) of its lines could not be read"
    }
    return isRead ? nil : Self.unread
  }

  // MARK: out

  static let unread = "it does not read its messages"

  /// False: too much waits already, and the connection must be closed.
  func send(_ message: DaemonMessage) -> Bool {
    waiting += message.line
    waiting.append(UInt8(ascii: "\n"))
    return flush()
  }

  /// Writes what the kernel takes. Reading shows when a connection has ended.
  func flush() -> Bool {
    while !waiting.isEmpty {
      let count = descriptor.send(waiting, waits: false)
      if count < 0 {
        if count == -Int(EINTR) { continue }
        if count != -Int(EAGAIN) { waiting = [] }
        break
      }
      waiting.removeFirst(count)
    }
    if waiting.isEmpty { waiting = [] }
    return waiting.count <= Self.maxWaiting
  }
}

/// How many lines may still be returned: 200 a second, and no more saved up.
private struct LineAllowance {
  static let perSecond: Int64 = 200
  private var lines = Self.perSecond
  private var refilledAt: Int64 = 0

  var isLeft: Bool { lines > 0 }

  mutating func use() { lines -= 1 }

  mutating func refill(at now: Int64) {
    let earned = (now - refilledAt) / (1_000_000_000 / Self.perSecond)
    guard earned > 0 else { return }
    refilledAt = now
    lines = min(Self.perSecond, lines + earned)
  }
}

/// How many bytes may still be read from one worker, over all its connections, earlier ones included:
/// 1 MiB a second, and 4 MiB saved up. That is four snapshots of the greatest length a second.
final class ByteAllowance {
  static let perSecond: Int64 = 1 << 20
  static let most: Int64 = 4 << 20
  private var bytes = ByteAllowance.most
  private var refilledAt: Int64 = 0

  var isLeft: Bool { bytes > 0 }

  /// It may fall below zero by what one read brings; nothing more is read until that is earned.
  func use(_ count: Int) { bytes -= Int64(count) }

  /// - Parameter now: nanoseconds.
  func refill(at now: Int64) {
    let second: Int64 = 1_000_000_000
    let span = min(now - refilledAt, 16 * second)
    guard span >= second / 100 else { return }
    refilledAt = now
    bytes = min(Self.most, bytes + span * Self.perSecond / second)
  }
}
