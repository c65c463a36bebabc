import CLinux
import Glibc

/// Reads the timeouts of a process's calls, from registers, memory or sockets. A timeout that can't
/// be read counts as none.
struct WaitReader {
  private let pid: Int32
  private let memory: Descriptor?
  private let pidfd: Descriptor?

  init(pid: Int32) {
    self.pid = pid
    // Both are nil if the process has ended, or may not be read.
    memory = try? Descriptor.open("/proc/\(pid)/mem")
    pidfd = try? Descriptor.pidfd(of: pid)
  }

  func limit(of call: WaitingCall) -> WaitingCall.Limit? {
    call.limit(read: words) { descriptor, isSending in
      guard let socket = duplicate(descriptor) else { return nil }
      let time = clinux_socket_timeout(socket.raw, isSending ? 1 : 0)
      return time > 0 ? time : nil
    }
  }

  func words(at address: UInt64) -> (Int64, Int64)? {
    guard let memory else { return nil }
    var words: [Int64] = [0, 0]
    let count = pread(memory.raw, &words, 16, off_t(truncatingIfNeeded: address))
    return count == 16 ? (words[0], words[1]) : nil
  }

  /// Duplicates a socket of the process. Keep the duplicate only for a moment: the socket stays
  /// open with it. A descriptor of a file gives nil, because closing its duplicate could wait
  /// without limit for a file system that doesn't answer (FUSE).
  func duplicate(_ number: Int32) -> Descriptor? {
    guard let pidfd, readLink("/proc/\(pid)/fd/\(number)")?.hasPrefix("socket:[") == true else {
      return nil
    }
    let result = clinux_pidfd_getfd(pidfd.raw, number)
    // The process may have put a file in the socket's place.
    return result < 0 ? nil : Descriptor(foreign: result)
  }
}

extension WaitingCall {
  init(_ call: clinux_call) {
    let arguments = withUnsafeBytes(of: call.arguments) {
      Array($0.bindMemory(to: UInt64.self))
    }
    self.init(
      number: call.number, arguments: arguments, stack: call.stack, instruction: call.instruction)
  }
}
