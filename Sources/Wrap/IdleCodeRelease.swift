import Daemon
import Linux

/// Unmaps the wrapper's own code when no state has changed for a moment. The code that starts,
/// suspends and resumes a program is most of a wrapper's memory, and isn't used between two
/// changes. The kernel may keep those pages in its cache, and maps code again when it runs.
final class IdleCodeRelease {
  private let timers: any Timers
  private let release: () -> Void
  private var timer: LoopToken?

  static let delay = Duration.seconds(3)

  init(_ timers: any Timers, release: @escaping () -> Void = releaseUnusedCode) {
    self.timers = timers
    self.release = release
  }

  /// Starts the delay again, because a state has changed and the change has to be processed first.
  func postpone() {
    if let timer { timers.cancel(timer) }
    timer = timers.after(Self.delay) { [unowned self] in
      timer = nil
      release()
    }
  }
}
