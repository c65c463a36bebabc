import Linux

/// The errors of a wrapper whose program has the terminal. They would overwrite the program's
/// screen, so they wait in a pipe until the program has ended. The pipe has room for 64 KiB.
final class DeferredErrors: Sendable {
  /// The end to which errors are written. A write doesn't block.
  let descriptor: Descriptor
  private let readEnd: Descriptor

  /// Returns nil if no pipe can be made. The errors are written at once then.
  init?() {
    do throws(SystemCallError) { (readEnd, descriptor) = try unblockedPipe() } catch { return nil }
  }

  /// Writes the errors to standard error.
  func write() {
    // The pipe is empty if no error waits (EAGAIN). The read fails for no other reason.
    writeToStandardError((try? readEnd.read(upTo: 1 << 16)) ?? [])
  }
}
