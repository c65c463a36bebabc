import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

/// What a wrapper has beside what any daemon has: the one worker that it stands in for.
final class Wrapped {
  let settings: WrapSettings
  let id: WorkerID
  private let guardian: Guardian?
  var end: WrapEnd?
  /// Signals for a worker that sleeps, until it runs.
  var waitingSignals: [Int32] = []
  /// Stopped by the terminal (Ctrl-Z), together with the wrapper.
  var isHeld = false
  /// Times that it has been woken.
  var wakes = 0
  var registration: Registration?
  /// Whoever started us.
  let caller: Descriptor?

  init(_ settings: WrapSettings, name: String, guardian: Guardian?) {
    self.settings = settings
    self.guardian = guardian
    id = WorkerID(name)
    caller = try? Descriptor.pidfd(of: getppid())
  }

  var inheritance: Inheritance {
    var inheritance = settings.inheritance
    inheritance.announcement = guardian?.announcement
    return inheritance
  }

  /// The program has its own: one more reader or writer here, and a hang-up would not be seen.
  func letGoOfInherited() {
    for number in settings.inheritance.descriptors { close(number) }
    Standard.occupy([STDIN_FILENO, STDOUT_FILENO])
  }

  /// Between two looks at a running program: often enough for `idle_after`, and no oftener.
  var interval: Duration {
    let wanted = settings.policy.foreground.idleAfter / 8
    return min(max(wanted, .milliseconds(100)), .seconds(2))
  }

  /// While it sleeps only the machine's memory is looked at.
  static let restingInterval = Duration.seconds(5)

  func dismissGuardian() { guardian?.dismiss() }
}

/// Whether a wrapped program is at work.
struct WorkMeter: Sendable {
  private var output = OutputMeter()
  private var members: Set<Int32> = []

  /// Whether it has written something, has started or ended a process since the last look, or is at
  /// work now. On a busy machine that needn't mean processor time: it may be waiting for that.
  mutating func isAtWork(_ tree: ProcessTree) -> Bool {
    let hasWritten = output.look(at: tree)
    let pids = Set(tree.pids)
    defer { members = pids }
    return hasWritten || (pids != members && !members.isEmpty) || tree.pids.contains(where: isBusy)
  }

  /// Some thread runs, or waits for a processor or a disk.
  private func isBusy(_ pid: Int32) -> Bool {
    ((try? threads(of: pid)) ?? []).contains { thread in
      let state = (try? ProcessStat.read(thread: thread, of: pid))?.state
      return state == .running || state == .uninterruptible
    }
  }
}
