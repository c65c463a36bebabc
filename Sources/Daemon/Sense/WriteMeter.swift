import Glibc
import Linux
import Policy
import Supervision

/// What a worker has written by itself between two samples.
struct Written: Hashable, Sendable {
  var bytes: UInt64
  /// The share of `bytes` that was written to its standard output and error, as files that the
  /// daemon reads as its log.
  var logged: UInt64
  /// Whether pages of a file on a disk were changed.
  var reachesDisk: Bool
}

/// Measures what a worker writes, by the kernel's counts for its processes.
struct WriteMeter: Sendable {
  private var output = OutputMeter()
  private var positions: [Int64?] = []

  /// What was written since the last sample; nil at the first one, which only prepares.
  mutating func sample(_ tree: ProcessTree) -> Written? {
    let now = [STDOUT_FILENO, STDERR_FILENO].map { number in
      tree.pids.first.flatMap { filePosition(of: number, in: $0) }
    }
    defer { positions = now }
    guard let output = output.measure(tree) else { return nil }
    return Written(
      bytes: output.bytes, logged: Self.growth(from: positions, to: now),
      reachesDisk: output.reachesDisk)
  }

  /// The growth of the files in bytes. If both descriptors are the same open file, it counts once.
  static func growth(from before: [Int64?], to now: [Int64?]) -> UInt64 {
    let moves = zip(before, now).compactMap { old, new -> [Int64]? in
      guard let old, let new, new > old else { return nil }
      return [old, new]
    }
    return Set(moves).reduce(0) { $0 + UInt64($1[1] - $1[0]) }
  }
}

/// Decides whether a worker writes regularly, and so works although it has no traffic and uses
/// little processor time.
///
/// A worker without clients (a poller, a recorder, a batch) has nothing else to do, so all its
/// writes are its work. Servers write for housekeeping: they wake their own threads through pipes,
/// and log health checks. For a server, only writes to files on a disk count, without its log. A
/// single write isn't work: it may be a record at the end of other work. Two writes of a server
/// aren't either: an idle PostgreSQL writes two times a minute.
struct RegularWriting: Sendable {
  private var all = Recent(count: 2)
  private var files = Recent(count: 3)
  private var reachedDiskAt: Instant?

  /// The minimum size of a write. A smaller one wakes the worker's own threads.
  static let minBytes: UInt64 = 4
  /// The time in which `count` writes are regular. Longer intervals are the business of
  /// `background.wake_for_timers`.
  static let window = Duration.seconds(50)

  /// The times of the last writes.
  private struct Recent: Sendable {
    let count: Int
    private(set) var times: [Instant] = []

    var last: Instant? { times.last }
    var isRegular: Bool {
      guard times.count == count, let first = times.first, let last else { return false }
      return last - first <= window
    }

    mutating func add(at now: Instant) { times = times.suffix(count - 1) + [now] }
  }

  /// Records what was written.
  ///
  /// - Returns: whether the worker is at work.
  mutating func record(_ written: Written, hasClients: Bool, at now: Instant) -> Bool {
    if written.reachesDisk { reachedDiskAt = now }
    let writes = written.bytes >= Self.minBytes
    if writes { all.add(at: now) }
    // The kernel counts a page of a file again only after the disk has it, up to half a minute
    // later.
    let reachesDisk = reachedDiskAt.map { now - $0 <= Self.window } ?? false
    let unlogged = written.bytes - min(written.logged, written.bytes)
    let writesFiles = reachesDisk && unlogged >= Self.minBytes
    if writesFiles { files.add(at: now) }
    return hasClients ? writesFiles && files.isRegular : writes && all.isRegular
  }

  /// Whether the worker wrote regularly until a moment ago.
  func isUnderWay(hasClients: Bool, at now: Instant) -> Bool {
    let writing = hasClients ? files : all
    return writing.isRegular && writing.last.map { now - $0 <= Self.window } ?? false
  }
}
