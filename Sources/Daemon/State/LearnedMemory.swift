import Lifecycle
import Policy

// The facts about workers that outlive the daemon: what the engine has learned, and how the
// workers' last runs ended. They are in one file:
//
//     dormouse memory 1
//     {"exits":…,"learned":…,"savedAt":…}    a line of JSON; times as distances from `savedAt`
//     crc32c 0123abcd                        the checksum of all before it
//
// The file is replaced when something has changed, at most every half minute, and when the daemon
// ends. A damaged file counts as missing: all in it can be learned again.

struct LearnedMemory: Codable, Hashable, Sendable {
  /// Seconds since 1970.
  var savedAt: Int64 = 0
  var learned = Learned()
  /// The ends of runs by worker, the latest last.
  var exits: [String: [ExitRecord]] = [:]

  /// The maximum number of workers in the file: `run` can create thousands.
  static let maxWorkers = 1000
  private static let title = "dormouse memory 1"

  /// The file's content.
  ///
  /// - Parameter now: the time by the engine's clock, which counts from the machine's start.
  func encoded(at now: Instant) throws -> String {
    var moved = self
    moved.learned = learned.moved(by: Instant.zero - now)
    return try SealedFacts.encode(moved, title: Self.title)
  }

  /// Reads a file's content; nil if `encoded` hasn't written it.
  ///
  /// - Parameters:
  ///   - now: the current time by the engine's clock.
  ///   - time: the current time in seconds since 1970.
  init?(_ bytes: [UInt8], at now: Instant, time: Int64) {
    guard let memory = SealedFacts.decode(LearnedMemory.self, from: bytes, title: Self.title) else {
      return nil
    }
    self = memory
    // If the clock was set back, nothing may have happened in the future.
    let elapsed = min(max(time - savedAt, 0), 366 * 86_400)
    learned = learned.moved(by: (now - .zero) - .seconds(elapsed))
  }

  init() {}
}
