import Glibc
import Linux
import Synchronization

/// Writes segments on a thread of its own: a disk that is slow just when memory is short must not
/// keep the daemon from acting. Nothing is synced: a daemon that is killed loses nothing that was
/// written, and a machine that loses its power loses the journal's last seconds.
final class SegmentFile: Sendable {
  private let queue: WorkQueue
  private let shared = Mutex(Shared())

  private struct Shared {
    var file: (descriptor: Descriptor, path: String)?
    var pending = 0
    var failure: SystemCallError?
  }

  init(queue: WorkQueue) { self.queue = queue }

  /// Bytes that may wait for the disk.
  static let maxPending = 4 << 20

  /// Bytes that wait for the disk now.
  var pending: Int { shared.withLock { $0.pending } }

  /// What went wrong since this was asked last. Nothing is written any more until `begin`.
  func takeFailure() -> SystemCallError? {
    shared.withLock { shared in
      defer { shared.failure = nil }
      return shared.failure
    }
  }

  /// A new file; `then` is called on the queue when it is there.
  func begin(_ path: String, then: @escaping @Sendable () -> Void) {
    queue.submit { [self] in
      do throws(SystemCallError) {
        let file = try Descriptor.open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, mode: 0o600)
        shared.withLock { $0.file = (file, path) }
        then()
      } catch { fail(error) }
    }
  }

  func append(_ bytes: [UInt8]) {
    shared.withLock { $0.pending += bytes.count }
    queue.submit { [self] in
      defer { shared.withLock { $0.pending -= bytes.count } }
      guard let file = shared.withLock({ $0.file }) else { return }
      do throws(SystemCallError) {
        var failure: SystemCallError?
        bytes.withUnsafeBytes { bytes in
          do throws(SystemCallError) {
            try file.descriptor.writeAll(bytes)
          } catch { failure = SystemCallError("write", on: file.path, code: error.code) }
        }
        if let failure { throw failure }
      } catch { fail(error) }
    }
  }

  private func fail(_ error: SystemCallError) {
    shared.withLock { shared in
      shared.file = nil
      shared.failure = error
    }
  }

  /// When everything before this has been written.
  func whenWritten(_ done: @escaping @Sendable () -> Void) { queue.submit(done) }

  /// Waits for that.
  func drain() { queue.perform {} }
}
