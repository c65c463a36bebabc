import Glibc
import Linux

/// The terminal of the wrapper's session. Tests hand in their own.
protocol JobTerminal: AnyObject {
  /// The process group that gets the terminal's keys; nil: the terminal has hung up.
  var foregroundGroup: Int32? { get }
  /// The group gets the terminal's keys from now on. Only from the foreground group.
  func give(to group: Int32)
}

final class ControllingTerminal: JobTerminal {
  private let descriptor: Descriptor

  /// nil: standard input isn't the terminal of this session.
  init?() {
    guard isatty(STDIN_FILENO) == 1, tcgetsid(STDIN_FILENO) == getsid(0),
      // Without it, standard input is a terminal that sends this process no signals.
      let descriptor = try? Descriptor.open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)
    else { return nil }
    self.descriptor = descriptor
  }

  var foregroundGroup: Int32? {
    let group = tcgetpgrp(descriptor.raw)
    return group > 0 ? group : nil
  }

  // A group that has ended leaves the terminal to this one.
  func give(to group: Int32) { tcsetpgrp(descriptor.raw, group) }
}
