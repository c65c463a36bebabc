import Glibc
import Linux

/// Errors of a wrapper whose program has the terminal: they would be written over its screen, so they wait in a pipe
/// for the program's end. The pipe holds 64 KiB.
final class HeldErrors: Sendable {
  /// Where they are written; it doesn't block.
  let descriptor: Descriptor
  private let held: Descriptor

  /// nil: there is no pipe. The errors are written at once then.
  init?() {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    (held, descriptor) = (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
  }

  /// Writes them to standard error.
  func write() {
    // Empty if none waits (EAGAIN). There is no other reason.
    let bytes = (try? held.read(upTo: 1 << 16)) ?? []
    if !bytes.isEmpty { _ = Glibc.write(STDERR_FILENO, bytes, bytes.count) }
  }
}
