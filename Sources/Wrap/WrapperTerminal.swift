import Glibc
import Linux

/// The terminal of the wrapper's session, which its program has, too. Made before the first thread.
final class WrapperTerminal {
  private let descriptor: Descriptor
  /// Of the signals that the wrapper gets.
  let queue: SignalQueue
  let witness: SignalWitness

  /// nil: standard input isn't the terminal of this session.
  init?() throws(SystemCallError) {
    guard isatty(STDIN_FILENO) == 1, tcgetsid(STDIN_FILENO) == getsid(0),
      // Without it, standard input is a terminal that sends this process no signals.
      let descriptor = try? Descriptor.open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)
    else { return nil }
    self.descriptor = descriptor
    // Blocked before the witness is forked: none is lost until it reads its own.
    queue = try SignalQueue(PassedSignals.passed + [SIGCHLD])
    witness = try SignalWitness(queue)
  }

  var foregroundGroup: Int32? {
    let group = tcgetpgrp(descriptor.raw)
    return group > 0 ? group : nil
  }

  // A group that has ended leaves the terminal to this one.
  func give(to group: Int32) { tcsetpgrp(descriptor.raw, group) }
}
