import CLinux
import Glibc
import Linux

/// Frees the memory of processes that have got SIGKILL and may take long to exit (process_mrelease(2), Linux
/// 5.15): a process that hangs in the kernel, or in a tracer's stop, keeps its memory otherwise.
public struct MemoryRelease: Sendable {
  private let subject: String
  private let processes: [Descriptor]

  /// Before the signal: the number of a process that has exited may be another process's.
  public init(of tree: ProcessTree, about subject: String) {
    self.subject = subject
    // A process that has ended has no memory to free.
    processes = tree.processes.compactMap { try? $0.identity.openPidfd() }
  }

  /// After the signal. The call waits for the mappings of a process that hangs while it changes them,
  /// so it has a thread of its own; nothing depends on its end.
  public func begin(_ done: @escaping @Sendable (Int) -> Void = { _ in }) {
    guard !processes.isEmpty else { return }
    // Refused: an earlier attempt for this worker hangs.
    _ = Self.jobs.submitIfIdle(about: subject) { [self] in
      let count = perform()
      return { done(count) }
    }
  }

  private static let jobs = JobPool(name: "dormouse-reap", most: 16, endsAfter: .seconds(5))

  /// Returns how many gave their memory back this way. EAGAIN (it hasn't taken its signal yet, or others
  /// walk its memory) is tried again a few times. An ended process (ESRCH), memory that is shared with a
  /// process that lives (EINVAL), an older kernel (ENOSYS) and a container's filter (EPERM) mean that there is
  /// nothing to do.
  func perform() -> Int {
    var released = 0
    for process in processes {
      for attempt in 1...Self.maxTries {
        let result = clinux_process_mrelease(process.raw)
        if result == 0 { released += 1 }
        guard result == -EAGAIN, attempt < Self.maxTries else { break }
        // On a thread of its own; there is no event for it.
        pauseThread(for: .milliseconds(1))
      }
    }
    return released
  }

  /// The kernel has the call, and no filter refuses it.
  static var isAvailable: Bool { clinux_process_mrelease(-1) == -EBADF }

  private static let maxTries = 10
}
