import Linux
import Synchronization

/// A hibernator, and the thread that belongs to it while it traces. Beyond 32 threads, a sleeping
/// worker that isn't traced has none: a thread would use 28 KB of RAM, in its stack and in what the
/// allocator keeps for it.
final class HibernatorRunner: Sendable {
  let queue: WorkQueue
  /// The hibernator. It is locked on the queue's thread, or for a moment on another one while the
  /// queue has none.
  let hibernator: Mutex<Hibernator>
  /// True while a `reapChildren` is queued.
  let mustReap = Atomic(false)
  /// The number of jobs that were submitted and haven't ended.
  let pending = Atomic(0)
  private let isTracing: Switch

  private final class Switch: Sendable { let isOn = Atomic(false) }

  init(_ hibernator: sending Hibernator, _ threads: ThreadBudget) {
    let isTracing = Switch()
    self.isTracing = isTracing
    self.hibernator = Mutex(hibernator)
    // Between operations, the thread releases each thread that it couldn't detach, as soon as that
    // thread stops.
    queue = WorkQueue(
      name: "dormouse-trace",
      idleTask: { Stragglers.shared.release() == 0 ? nil : .milliseconds(5) },
      mayEndThread: { !isTracing.isOn.load(ordering: .relaxed) }, threadBudget: threads)
  }

  /// Records whether the hibernator traces. It is called on the thread, after each job.
  func updateTracing() {
    isTracing.isOn.store(hibernator.withLock { $0.isTracing }, ordering: .relaxed)
  }
}
