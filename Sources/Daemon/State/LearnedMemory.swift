import Glibc
import Lifecycle
import Linux
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

/// The file with the facts, and whether it is up to date.
struct LearnedMemoryFile {
  let path: String
  /// What an earlier daemon's engine had learned; nil once it was handed over.
  private var learned: Learned?
  /// The ends of runs by worker, the latest last.
  private(set) var exits: [String: [ExitRecord]] = [:]
  /// The hash of the facts in the file. The facts themselves would be a second copy in memory. If
  /// the hashes of different facts were equal (1 in 2^64), the file would be written at the next
  /// change.
  private var writtenHash = LearnedMemoryFile.hash(LearnedMemory())
  /// Why the facts of an earlier daemon can't be read; nil if they can.
  private(set) var damage: String?
  private var savedAt = Instant.zero
  /// Whether the last write has failed.
  private var hasFailed = false

  static let saveEvery = Duration.seconds(30)

  init(path: String, at now: Instant) {
    self.path = path
    savedAt = now
    let bytes: [UInt8]
    do throws(SystemCallError) { bytes = try readFile(path) } catch {
      if error.code != ENOENT { damage = error.description }
      return
    }
    if let memory = LearnedMemory(bytes, at: now, time: Int64(time(nil))) {
      (learned, exits) = (memory.learned, memory.exits)
      writtenHash = Self.hash(memory)
    } else {
      damage = "\(path) is damaged"
    }
  }

  mutating func consumeLearned() -> Learned {
    defer { learned = nil }
    return learned ?? Learned()
  }

  func isDue(at now: Instant) -> Bool { now - savedAt >= Self.saveEvery }

  /// The facts to be written now; nil if the file has them already.
  mutating func nextToWrite(_ memory: LearnedMemory, at now: Instant) -> LearnedMemory? {
    savedAt = now
    var memory = memory
    let hash = Self.hash(memory)
    guard hash != writtenHash || hasFailed else { return nil }
    hasFailed = false
    memory.savedAt = Int64(time(nil))
    (exits, writtenHash) = (memory.exits, hash)
    return memory
  }

  /// Records that the facts that `nextToWrite` returned couldn't be written. They are returned
  /// again at the next save.
  mutating func didFailToWrite() { hasFailed = true }

  private static func hash(_ memory: LearnedMemory) -> Int {
    var hasher = Hasher()
    hasher.combine(memory.learned)
    hasher.combine(memory.exits)
    return hasher.finalize()
  }
}
