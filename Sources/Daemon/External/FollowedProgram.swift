import Linux
import Supervision

/// Runs a `SideProgram` on the event loop, and reports its end. It belongs to the event loop's
/// thread.
final class FollowedProgram {
  let program: SideProgram
  private let loop: any Timers & DescriptorWatches
  private var watch: (descriptor: Descriptor, token: LoopToken)?
  private var ended: (() -> Void)?

  /// `ended` is called at most once: never before this returns, and never after `cancel`.
  init(
    _ program: SideProgram, _ loop: any Timers & DescriptorWatches, ended: @escaping () -> Void
  ) {
    self.program = program
    self.loop = loop
    self.ended = ended
    if program.isOver {
      loop.after(.zero) { [weak self] in self?.end() }
    } else {
      follow()
    }
  }

  deinit { unwatch() }

  func cancel() {
    ended = nil
    unwatch()
    program.cancel()
  }

  private func follow() {
    guard let descriptor = program.descriptor else { return end() }
    if watch?.descriptor === descriptor { return }
    unwatch()
    do throws(SystemCallError) {
      let token = try loop.whenReadable(descriptor) { [unowned self] in
        // The program closes its descriptor. The descriptor is kept open until it is unwatched,
        // because epoll forgets a closed one.
        let held = descriptor
        program.proceed()
        follow()
        withExtendedLifetime(held) {}
      }
      watch = (descriptor, token)
    } catch {
      program.cancel()
      loop.after(.zero) { [weak self] in self?.end() }
    }
  }

  private func end() {
    unwatch()
    let ended = ended
    self.ended = nil
    ended?()
  }

  private func unwatch() {
    if let watch { loop.unwatch(watch.descriptor, watch.token) }
    watch = nil
  }
}
