import Glibc
import Linux
import Synchronization

/// Writes segments on a thread of its own: a disk that is slow just when memory is short must not
/// keep the daemon from acting. Nothing is synced: a daemon that is killed loses nothing that was
/// written, and a machine that loses its power loses the journal's last seconds.
final class SegmentFile: Sendable {
  typealias Open = @Sendable (_ path: String) throws(SystemCallError) -> Descriptor

  private let queue: WorkQueue
  private let open: Open
  private let shared = Mutex(Shared())

  private struct Shared {
    var file: File?
    var pending = 0
    var failure: SystemCallError?
  }

  private struct File {
    let descriptor: Descriptor
    let path: String
    /// Whether a whole `append` is in the file.
    var hasContent = false
  }

  /// - Parameter open: creates a new file.
  init(queue: WorkQueue, open: @escaping Open = SegmentFile.create) {
    self.queue = queue
    self.open = open
  }

  static func create(_ path: String) throws(SystemCallError) -> Descriptor {
    try Descriptor.open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, mode: 0o600)
  }

  /// The maximum number of bytes that may wait for the disk.
  static let maxPending = 4 << 20

  /// The number of bytes that wait for the disk now.
  var pending: Int { shared.withLock { $0.pending } }

  /// The failure since the last call; nil if there was none. After a failure nothing is written
  /// until `begin`.
  func consumeFailure() -> SystemCallError? {
    shared.withLock { shared in
      defer { shared.failure = nil }
      return shared.failure
    }
  }

  /// Begins a new file. Both closures are called on the queue: `first` before the file is created,
  /// `then` when it exists.
  func begin(
    _ path: String, first: @escaping @Sendable () -> Void = {},
    then: @escaping @Sendable () -> Void = {}
  ) {
    queue.submit { [self] in
      first()
      do throws(SystemCallError) {
        let descriptor = try open(path)
        shared.withLock { $0.file = File(descriptor: descriptor, path: path) }
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
        try file.descriptor.writeAll(bytes)
        return shared.withLock { $0.file?.hasContent = true }
      } catch {
        // On a full disk, the next attempt would leave another useless file, and so would each one
        // after it.
        if !file.hasContent { discardFile(file.path) }
        fail(SystemCallError("write", on: file.path, code: error.code))
      }
    }
  }

  private func fail(_ error: SystemCallError) {
    shared.withLock { shared in
      shared.file = nil
      shared.failure = error
    }
  }
}
