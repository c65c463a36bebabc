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
    do throws(SystemCallError) { (held, descriptor) = try unblockedPipe() } catch { return nil }
  }

  /// Writes them to standard error.
  func write() {
    // Empty if none waits (EAGAIN). There is no other reason.
    let bytes = (try? held.read(upTo: 1 << 16)) ?? []
    writeToStandardError(bytes)
  }
}
