import CLinux
import Synchronization

/// The memory of this process. Any thread may call these functions.
public enum SelfMemory {
  private static let isLocked = Atomic(false)
  private static let isDue = Atomic(false)
  private static let codeIsDue = Atomic(false)
  private static let turn = Mutex(())
  /// One release serves all operations that end within this time.
  private static let delay = Duration.seconds(2)

  /// Keeps the mappings of this moment, mainly the code and the heap, in RAM once they are used, if
  /// that is permitted (mlockall(2)).
  public static func lock() { isLocked.store(clinux_lock_memory() == 0, ordering: .relaxed) }

  /// Gives what was freed of the heap back to the kernel soon, on a thread of its own: with a
  /// thousand workers this takes up to 0.1 s. Without a thread the memory stays.
  ///
  /// - Parameter code: true: the code that isn't needed then, too.
  public static func releaseUnusedSoon(code: Bool = false) {
    if code { codeIsDue.store(true, ordering: .relaxed) }
    if isDue.exchange(true, ordering: .relaxed) { return }
    let isStarted = Thread.start(name: "dormouse-free") {
      pauseThread(for: delay)
      isDue.store(false, ordering: .relaxed)
      turn.withLock { _ in releaseUnused(code: codeIsDue.exchange(false, ordering: .relaxed)) }
    }
    if !isStarted { isDue.store(false, ordering: .relaxed) }
  }

  private static func releaseUnused(code: Bool) {
    // madvise(2) refuses locked memory.
    let isLocked = isLocked.load(ordering: .relaxed)
    if isLocked { _ = clinux_unlock_memory() }
    if code { releaseUnusedCode() }
    clinux_trim_heap()
    // If there is too much for the limit of locked memory now, the next time there may not be.
    if isLocked { _ = clinux_lock_memory() }
  }
}

/// Drops the pages of this process's own code that it doesn't need now. The code that ran at the
/// start (arguments, configuration files, the first launches) is the larger part of a daemon's
/// memory. The kernel keeps the pages in its cache, and maps them again on their next use.
/// Constants are dropped as well; if they lie beside variables, they are made read-only first.
///
/// Only pages that are as in the file are dropped, because dropping a changed page would lose the
/// change. Locked pages (mlockall(2)) stay.
public func releaseUnusedCode() {
  _ = constantsAreProtected
  clinux_release_code()
}

/// True once the constants have been made read-only, which is done once in a process.
private let constantsAreProtected = clinux_protect_constants() > 0
