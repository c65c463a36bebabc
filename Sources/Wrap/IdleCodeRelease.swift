import Daemon
import Linux
import Policy

/// Lets go of the wrapper's own code when nothing has changed for a moment. What starts a program, puts it
/// to sleep and brings it back is most of what a wrapper has in memory, and between two changes it isn't
/// used. The kernel has those pages in its cache for as long as it wants, and maps again what runs again.
final class IdleCodeRelease {
  private let timers: any Timers
  private let release: () -> Void
  private var timer: LoopToken?

  static let delay = Duration.seconds(3)

  init(_ timers: any Timers, release: @escaping () -> Void = dropOwnCode) {
    self.timers = timers
    self.release = release
  }

  /// Something has changed: what follows from it is done first.
  func postpone() {
    if let timer { timers.cancel(timer) }
    timer = timers.after(Self.delay) { [unowned self] in
      timer = nil
      release()
    }
  }
}
