import Daemon
import Linux

/// Wrappers that the program has started (an agent's wrapped servers). They run while the program sleeps, and one may
/// end then: the SIGCHLD for it waits until the program runs again. Belongs to the loop's thread.
final class InnerWrappers {
  private let watches: any DescriptorWatches
  private var watched: [(descriptor: Descriptor, token: LoopToken)] = []

  init(watches: any DescriptorWatches) { self.watches = watches }

  deinit { forget() }

  /// In place of those that were watched.
  func watch(_ processes: [ProcessIdentity], onEnd wake: @escaping () -> Void) {
    forget()
    for process in processes {
      // One that has been reaped needs no watch. Without descriptors the program isn't woken for this end.
      guard let descriptor = try? Descriptor.pidfd(of: process.pid),
        let token = try? watches.whenReadable(
          descriptor,
          do: { [weak self] in
            self?.forget()
            wake()
          })
      else { continue }
      watched.append((descriptor, token))
    }
  }

  /// The program runs.
  func forget() {
    for (descriptor, token) in watched { watches.unwatch(descriptor, token) }
    watched = []
  }
}
