import Policy

@testable import Daemon

/// A disk that takes its time.
final class ShellDisk: SavedState {
  private let clock: ShellClock
  private var savedAt = Instant.zero
  private var delay = Duration.zero

  init(_ clock: ShellClock) { self.clock = clock }

  func save() { savedAt = max(savedAt, clock.now + delay) }

  func stall(for delay: Duration) {
    self.delay = delay
    save()
  }

  var isSaved: Bool { clock.now >= savedAt }

  func whenSaved(_ body: @escaping () -> Void) {
    clock.after(max(.zero, savedAt - clock.now), do: body)
  }
}
