import CLinux
import Glibc

/// A call in which a thread waits and which another process ends without making a descriptor of the
/// worker readable. An epoll set can't detect such a wake-up.
public struct OutsideWait: Hashable, Sendable {
  public enum Reason: Hashable, Sendable {
    /// The thread opens a FIFO, which waits until the other end is opened.
    case opening(directory: Int32, path: String, writes: Bool)
    case fileLock
    /// A futex in memory that the process shares with another process.
    case sharedMemory
    case semaphore
    case messages
    /// A POSIX message queue, by the worker's descriptor. The descriptor can be polled.
    case messageQueue(descriptor: Int32)
  }

  public var pid: Int32
  public var thread: Int32
  public var reason: Reason

  /// Finds the waits of processes that are at rest. It needs the right to trace them; threads that
  /// can't be read are left out. Don't call it on the event loop's thread: reading a process's
  /// memory waits for its lock.
  public static func all(of tree: ProcessTree) -> [OutsideWait] {
    tree.processes.flatMap { process in
      WaitingCall.all(of: process.identity).compactMap { thread, call in
        reason(of: call, in: process.pid).map {
          OutsideWait(pid: process.pid, thread: thread, reason: $0)
        }
      }
    }
  }

  /// True if the thread has ended, or waits in another call by now. It is false while the thread
  /// runs: it may be about to make this call again.
  public var isOver: Bool {
    // If the file can't be read, the thread has ended.
    guard let line = try? readText("/proc/\(pid)/task/\(thread)/syscall") else { return true }
    guard let call = WaitingCall(line) else { return false }
    return Self.reason(of: call, in: pid) != reason
  }

  private static func reason(of call: WaitingCall, in pid: Int32) -> Reason? {
    let arguments = call.arguments
    switch clinux_outside_of(call.number, arguments) {
    case CLINUX_OUTSIDE_OPEN:
      return opening(pid, AT_FDCWD, path: arguments[0], flags: arguments[1])
    case CLINUX_OUTSIDE_OPENAT:
      return opening(
        pid, Int32(truncatingIfNeeded: arguments[0]), path: arguments[1], flags: arguments[2])
    case CLINUX_OUTSIDE_OPENAT2:
      guard let flags = memory(of: pid, at: arguments[2], length: 8) else { return nil }
      return opening(
        pid, Int32(truncatingIfNeeded: arguments[0]), path: arguments[1],
        flags: flags.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
    case CLINUX_OUTSIDE_LOCK: return .fileLock
    case CLINUX_OUTSIDE_FUTEX: return isShared(arguments[0], in: pid) ? .sharedMemory : nil
    case CLINUX_OUTSIDE_SEMAPHORE: return .semaphore
    case CLINUX_OUTSIDE_MESSAGE: return .messages
    case CLINUX_OUTSIDE_QUEUE:
      return .messageQueue(descriptor: Int32(truncatingIfNeeded: arguments[0]))
    default: return nil
    }
  }

  private static func opening(
    _ pid: Int32, _ directory: Int32, path: UInt64, flags: UInt64
  ) -> Reason? {
    guard let bytes = memory(of: pid, at: path, length: Int(PATH_MAX)),
      let end = bytes.firstIndex(of: 0), end > 0
    else { return nil }
    let access = Int32(truncatingIfNeeded: flags) & O_ACCMODE
    return .opening(
      directory: directory, path: String(decoding: bytes[..<end], as: UTF8.self),
      writes: access == O_WRONLY)
  }

  /// Reads at most `length` bytes; fewer if the mapping ends before.
  private static func memory(of pid: Int32, at address: UInt64, length: Int) -> [UInt8]? {
    // Memory that can't be read names no file.
    let bytes = try? Descriptor.open("/proc/\(pid)/mem")
      .readBytes(upTo: length, at: Int64(truncatingIfNeeded: address))
    return bytes?.isEmpty == false ? bytes : nil
  }

  /// Whether the memory at an address is shared. pthread_join(3) also waits at a futex that isn't
  /// marked private, in memory that isn't shared.
  private static func isShared(_ address: UInt64, in pid: Int32) -> Bool {
    // Memory whose mapping can't be read counts as not shared.
    guard let mappings = try? MemoryMapping.headers(of: pid) else { return false }
    return mappings.contains { $0.shared && $0.start <= address && address < $0.end }
  }
}
