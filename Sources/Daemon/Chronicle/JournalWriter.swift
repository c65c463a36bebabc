import Journal
import Lifecycle
import Linux
import Policy
import PolicyFile

/// Writes the daemon's journal. It encodes on the event loop's thread, which takes microseconds,
/// and writes to the disk on another thread. A failure is logged once, and delays nothing.
final class JournalWriter {
  let directory: JournalDirectory
  private let configuration: JournalConfiguration
  private let version: String
  let run = String(UInt64.random(in: 0 ... .max), radix: 16)
  private let log: (DaemonLog.Priority, String) -> Void
  private let clock: () -> WallTime
  private let file: SegmentFile

  private var encoder: JournalEncoder?
  private var nextFile = 1
  private var nextSegment: Int64 = 0
  private var lastFlush = Instant.zero
  private var wallOffset: Int64 = 0
  private var retryAt: Instant?

  /// How long records of little importance may wait in memory.
  static let maxDelay = Duration.seconds(30)
  static let retryAfter = Duration.seconds(60)
  /// The wall clock's change, in nanoseconds, from which it is recorded. A clock that is adjusted
  /// slowly doesn't make a record each time.
  private static let wallTolerance: Int64 = 50_000_000

  init(
    _ configuration: JournalConfiguration, directory: String, version: String, queue: WorkQueue,
    wall: @escaping () -> WallTime = JournalWriter.wall,
    open: @escaping SegmentFile.Open = SegmentFile.create,
    log: @escaping (DaemonLog.Priority, String) -> Void
  ) throws(StartError) {
    self.configuration = configuration
    self.version = version
    self.log = log
    clock = wall
    file = SegmentFile(queue: queue, open: open)
    self.directory = JournalDirectory(path: directory)
    _ = try openTrusted(directory, making: true, as: .shared)
    do throws(SystemCallError) {
      nextFile = (try self.directory.numbers().last ?? 0) + 1
    } catch { throw .directory(error) }
  }

  /// Begins a segment. This must be called first, before the engine gets any event.
  func begin(_ engine: Engine, at now: Instant, makingDirectory: Bool = false) {
    guard file.pending < SegmentFile.maxPending else {
      return giveUp("the disk is too slow", at: now)
    }
    let wall = clock()
    do {
      encoder = try JournalEncoder(
        engine, version: version, run: run, segment: nextSegment, wall: wall, at: now)
    } catch { return giveUp("can't write the engine's state: \(error)", at: now) }
    wallOffset = wall.nanoseconds - now.nanoseconds
    let limit = ByteCount(
      configuration.size.bytes.multipliedReportingOverflow(by: Int64(configuration.keep)).0)
    file.begin(directory.path(of: nextFile)) { [directory] in
      // If that fails, the creation of the file fails too.
      if makingDirectory { _ = try? openTrusted(directory.path, making: true, as: .shared) }
    } then: { [directory] in
      directory.trim(to: limit)
    }
    nextFile += 1
    nextSegment += 1
    flush(at: now)
  }

  /// Records an event.
  ///
  /// - Parameter engine: the engine after the event.
  func record(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    if let failure = file.consumeFailure() { giveUp("\(failure)", at: now) }
    guard encoder != nil else { return retry(engine, at: now) }
    do {
      try encoder?.record(event, at: now, directives: directives)
    } catch { return giveUp("can't write an event: \(error)", at: now) }
    if Int64(encoder?.size ?? 0) >= configuration.size.bytes {
      flush(at: now)
      // If that has paused the journal, a new segment begins when it continues.
      if encoder != nil { begin(engine, at: now) }
    } else if directives.contains(where: Self.isUrgent) || now - lastFlush >= Self.maxDelay {
      flush(at: now)
    }
  }

  func record(_ policy: LifecyclePolicy, at now: Instant) {
    do {
      try encoder?.record(policy: policy, at: now)
    } catch { giveUp("can't write a policy: \(error)", at: now) }
  }

  /// Begins to write the records to the file.
  func flush(at now: Instant) {
    guard encoder != nil else { return }
    lastFlush = now
    let wall = clock()
    if (wall.nanoseconds - now.nanoseconds - wallOffset).magnitude > Self.wallTolerance.magnitude {
      wallOffset = wall.nanoseconds - now.nanoseconds
      encoder?.record(wall: wall, at: now)
    }
    guard file.pending < SegmentFile.maxPending else {
      return giveUp("the disk is too slow", at: now)
    }
    if let bytes = encoder?.drainBytes(), !bytes.isEmpty { file.append(bytes) }
  }

  /// Whether a reader may look for the record at once, so that it is written without delay.
  private static func isUrgent(_ directive: Directive) -> Bool {
    switch directive {
    case .transition, .pressureChanged, .report, .wouldHave, .overLimit, .leakSuspected,
      .willTerminate,
      .willNotTerminate, .protectedLeft, .terminatesNone:
      true
    default: false
    }
  }

  /// Pauses the journal. The number of a segment is left out, which shows a reader that something
  /// is missing.
  private func giveUp(_ reason: String, at now: Instant) {
    encoder = nil
    nextSegment += 1
    retryAt = now + Self.retryAfter
    log(.error, "journal paused for 1 min: \(reason)")
  }

  private func retry(_ engine: Engine, at now: Instant) {
    guard let retryAt, now >= retryAt, file.pending == 0 else { return }
    self.retryAt = nil
    // Another process may have removed the directory.
    begin(engine, at: now, makingDirectory: true)
  }

  static func wall() -> WallTime { WallTime(nanoseconds: Clocks.realtime) }
}
