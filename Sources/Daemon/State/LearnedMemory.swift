import Glibc
import Journal
import Lifecycle
import Linux
import Policy

// What outlives the daemon of all that it has seen of its workers: what the engine has learned, and how
// their last runs ended. In one file,
//
//     dormouse memory 1
//     {"exits":…,"learned":…,"savedAt":…}    a line of JSON; points in time as distances from `savedAt`
//     crc32c 0123abcd                        of all before it
//
// which is replaced when something has changed, half a minute after the last time at the earliest, and
// at the daemon's end. A damaged one counts as none: it holds nothing that can't be learned again.

struct Memory: Codable, Hashable, Sendable {
  /// Seconds since 1970.
  var savedAt: Int64 = 0
  var learned = Learned()
  /// By worker, the latest last.
  var exits: [String: [ExitRecord]] = [:]

  /// Workers of which something is kept: `run` can create thousands of them.
  static let maxWorkers = 1000
  private static let title = "dormouse memory 1"

  /// - Parameter now: of the engine's clock, which counts from the machine's start.
  func encoded(at now: Instant) throws -> String {
    var moved = self
    moved.learned = learned.moved(by: Instant.zero - now)
    return try SealedFacts.encode(moved, title: Self.title)
  }

  /// `nil`: `encoded` hasn't written this.
  ///
  /// - Parameter now, time: this moment by the engine's clock, and in seconds since 1970.
  init?(_ bytes: [UInt8], at now: Instant, time: Int64) {
    guard let memory = SealedFacts.decode(Memory.self, from: bytes, title: Self.title) else {
      return nil
    }
    self = memory
    // A clock that was set back makes nothing happen in the future.
    let elapsed = min(max(time - savedAt, 0), 366 * 86_400)
    learned = learned.moved(by: (now - .zero) - .seconds(elapsed))
  }

  init() {}
}

/// The file, and whether what it has is as it is now.
struct MemoryKeeper {
  let path: String
  /// What an earlier daemon's engine had learned, until that is taken.
  private var learned: Learned?
  /// By worker, the latest last.
  private(set) var exits: [String: [ExitRecord]] = [:]
  /// Of the facts in the file: they themselves would be a second copy in memory of all that was learned. If the
  /// hashes of different facts were equal (1 in 2^64), the file would be written at the next change.
  private var writtenHash = MemoryKeeper.hash(Memory())
  /// Why the facts that were kept earlier aren't known.
  private(set) var damage: String?
  private var savedAt = Instant.zero
  /// The last facts to be written aren't in the file.
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
    if let memory = Memory(bytes, at: now, time: Int64(time(nil))) {
      (learned, exits) = (memory.learned, memory.exits)
      writtenHash = Self.hash(memory)
    } else {
      damage = "\(path) is damaged"
    }
  }

  mutating func takeLearned() -> Learned {
    defer { learned = nil }
    return learned ?? Learned()
  }

  func isDue(at now: Instant) -> Bool { now - savedAt >= Self.saveEvery }

  /// The facts to be written now; `nil`: they are in the file already.
  mutating func nextToWrite(_ memory: Memory, at now: Instant) -> Memory? {
    savedAt = now
    var memory = memory
    let hash = Self.hash(memory)
    guard hash != writtenHash || hasFailed else { return nil }
    hasFailed = false
    memory.savedAt = Int64(time(nil))
    (exits, writtenHash) = (memory.exits, hash)
    return memory
  }

  /// The facts that `nextToWrite` returned couldn't be written: they are returned again when that is due.
  mutating func wasNotWritten() { hasFailed = true }

  private static func hash(_ memory: Memory) -> Int {
    var hasher = Hasher()
    hasher.combine(memory.learned)
    hasher.combine(memory.exits)
    return hasher.finalize()
  }
}
