import Glibc
import Linux

/// The terminal of the wrapper's session, which its program has, too. Create it before the first
/// thread.
final class WrapperTerminal {
  private let descriptor: Descriptor
  /// The queue of the signals that the wrapper receives.
  let queue: SignalQueue
  let witness: SignalWitness

  /// Returns nil if standard input isn't the terminal of this session.
  init?() throws(SystemCallError) {
    guard isatty(STDIN_FILENO) == 1, tcgetsid(STDIN_FILENO) == getsid(0),
      // Without /dev/tty, standard input is a terminal that sends this process no signals.
      let descriptor = try? Descriptor.open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)
    else { return nil }
    self.descriptor = descriptor
    // The signals are blocked before the witness is forked, so that none is lost until it reads its
    // own.
    queue = try SignalQueue(PassedSignals.passed + [SIGCHLD])
    witness = try SignalWitness(queue)
  }

  var foregroundGroup: Int32? {
    let group = tcgetpgrp(descriptor.raw)
    return group > 0 ? group : nil
  }

  // If the group has ended, the terminal stays with this one.
  func give(to group: Int32) { tcsetpgrp(descriptor.raw, group) }
}
