import CLinux
import Glibc
import Linux

/// Frees the memory of processes that have received SIGKILL and may need long to exit
/// (process_mrelease(2), Linux 5.15). Otherwise, a process that hangs in the kernel, or in a stop
/// of its tracer, keeps its memory.
public struct MemoryRelease: Sendable {
  private let subject: String
  private let processes: [Descriptor]

  /// Create it before the signal is sent: afterwards a pid may belong to another process.
  public init(of tree: ProcessTree, about subject: String) {
    self.subject = subject
    // A process that has ended has no memory to free.
    processes = tree.processes.compactMap { try? $0.identity.openPidfd() }
  }

  /// Call it after the signal was sent. The system call waits for a process that hangs while it
  /// changes its mappings, so it runs on a thread of its own. Nothing waits for it.
  ///
  /// - Parameter done: receives the number of processes whose memory was freed.
  public func begin(_ done: @escaping @Sendable (Int) -> Void = { _ in }) {
    guard !processes.isEmpty else { return }
    // The job is refused if an earlier attempt for this worker hangs.
    _ = Self.jobs.submitIfIdle(about: subject) { [self] in
      let count = perform()
      return { done(count) }
    }
  }

  private static let jobs = JobPool(name: "dormouse-reap", maxOrdinary: 16, endsAfter: .seconds(5))

  /// Returns the number of processes whose memory was freed by the call. EAGAIN is tried again a
  /// few times: the process hasn't handled its signal yet, or others read its memory maps. There is
  /// nothing to do if a process has ended (ESRCH), shares its memory with a live process (EINVAL),
  /// if the kernel is older (ENOSYS), or if a container's filter refuses the call (EPERM).
  func perform() -> Int {
    var released = 0
    for process in processes {
      for attempt in 1...Self.maxTries {
        let result = clinux_process_mrelease(process.raw)
        if result == 0 { released += 1 }
        guard result == -EAGAIN, attempt < Self.maxTries else { break }
        // This thread may wait, and no event reports the end of the condition.
        pauseThread(for: .milliseconds(1))
      }
    }
    return released
  }

  /// True if the kernel has the call, and no filter refuses it.
  static var isAvailable: Bool { clinux_process_mrelease(-1) == -EBADF }

  private static let maxTries = 10
}
