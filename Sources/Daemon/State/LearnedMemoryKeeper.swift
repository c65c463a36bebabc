import Glibc
import Lifecycle
import Linux
import Policy

/// Keeps on disk what the engine has learned, and how workers' last runs ended. It belongs to the
/// event loop's thread.
final class LearnedMemoryKeeper {
  /// Replaces the file, on another thread. `then` is called later on the event loop, with the
  /// reason if the write failed. It isn't called if the disk doesn't answer.
  typealias Write = (
    _ path: String, _ memory: LearnedMemory, _ now: Instant, _ then: @escaping (String?) -> Void
  ) -> Void

  private let clock: any Timers
  private let writeFacts: Write
  /// The file; nil if nothing is kept.
  private let path: String?
  private var sources:
    (driver: EngineDriver, workers: WorkerRegistry, exits: (WorkerID) -> [ExitRecord]?)?
  /// What an earlier daemon's engine had learned; nil once it was handed over.
  private var learned: Learned?
  /// The ends of runs by worker, the latest last.
  private var exits: [String: [ExitRecord]] = [:]
  /// The hash of the facts in the file. The facts themselves would be a second copy in memory. If
  /// the hashes of different facts were equal (1 in 2^64), the file would be written at the next
  /// change.
  private var writtenHash = LearnedMemoryKeeper.hash(LearnedMemory())
  /// Why the facts of an earlier daemon can't be read; nil if they can.
  private var damage: String?
  private var savedAt: Instant
  /// Whether the last write has failed.
  private var hasFailed = false

  static let saveEvery = Duration.seconds(30)

  /// Reads what an earlier daemon has kept.
  ///
  /// - Parameter path: the file; nil if nothing is kept, because a wrapped program has no later
  ///   daemon.
  init(path: String?, _ clock: any Timers, write: @escaping Write) {
    self.clock = clock
    writeFacts = write
    self.path = path
    savedAt = clock.now
    if let path { read(path) }
  }

  convenience init(path: String?, _ services: Services) {
    let (disk, loop, log) = (services.disk, services.loopReturn, services.log)
    self.init(path: path, services.loop) { path, memory, now, then in
      let done: @Sendable (String?) -> Void = loop.callback(then)
      disk.submit {
        let failure = failureText {
          let bytes = Array(try memory.encoded(at: now).utf8)
          try StateFile.replace(path, with: bytes, durability: .none)
        }
        // The failure is logged here, because the event loop gets no outcome any more when the
        // daemon ends.
        if let failure { log(.warning, "can't write what was learned about workers: \(failure)") }
        done(failure)
      }
    }
    if let damage {
      log(.warning, "what was learned about workers is lost: \(damage)")
    }
  }

  private func read(_ path: String) {
    let bytes: [UInt8]
    do throws(SystemCallError) { bytes = try readFile(path) } catch {
      if error.code != ENOENT { damage = error.description }
      return
    }
    if let memory = LearnedMemory(bytes, at: savedAt, time: Int64(time(nil))) {
      (learned, exits, writtenHash) = (memory.learned, memory.exits, Self.hash(memory))
    } else {
      damage = "\(path) is damaged"
    }
  }

  private static func hash(_ memory: LearnedMemory) -> Int {
    var hasher = Hasher()
    hasher.combine(memory.learned)
    hasher.combine(memory.exits)
    return hasher.finalize()
  }

  /// What an earlier daemon's engine had learned. Only the first call returns it.
  func consumeLearned() -> Learned {
    defer { learned = nil }
    return learned ?? Learned()
  }

  /// Sets the source of the facts that are kept from now on.
  ///
  /// - Parameter exits: how a worker's runs ended, the latest last; nil if the worker isn't known.
  func connect(
    _ driver: EngineDriver, _ workers: WorkerRegistry,
    exits: @escaping (WorkerID) -> [ExitRecord]?
  ) {
    sources = (driver, workers, exits)
  }

  /// How earlier runs of a worker of that name ended.
  func rememberedExits(of id: WorkerID) -> [ExitRecord] {
    sources?.exits(id) ?? exits[id.name] ?? []
  }

  /// Saves what has changed, if the last save was at least `saveEvery` ago.
  func saveWhenDue() {
    if clock.now - savedAt >= Self.saveEvery { save() }
  }

  /// Saves what has changed now. Draining the disk's queue waits for this.
  func save() {
    let now = clock.now
    guard let path, var facts = memory() else { return }
    savedAt = now
    let hash = Self.hash(facts)
    guard hash != writtenHash || hasFailed else { return }
    hasFailed = false
    facts.savedAt = Int64(time(nil))
    (exits, writtenHash) = (facts.exits, hash)
    writeFacts(path, facts, now) { [weak self] failure in
      if failure != nil { self?.hasFailed = true }
    }
  }

  /// The facts as they are now.
  private func memory() -> LearnedMemory? {
    guard let sources else { return nil }
    var memory = LearnedMemory()
    memory.learned = sources.driver.state.learned.limited(to: LearnedMemory.maxWorkers)
    memory.exits = exits
    for id in sources.workers.keys {
      if let exits = sources.exits(id), !exits.isEmpty { memory.exits[id.name] = exits }
    }
    if memory.exits.count > LearnedMemory.maxWorkers {
      let order = memory.exits.sorted {
        ($1.value.last?.at ?? 0, $0.key) < ($0.value.last?.at ?? 0, $1.key)
      }
      memory.exits = Dictionary(
        uniqueKeysWithValues: order.prefix(LearnedMemory.maxWorkers).map { ($0.key, $0.value) })
    }
    return memory
  }
}

/// The facts about workers that outlive the daemon: what the engine has learned, and how the
/// workers' last runs ended. They are in one file (`SealedFacts`), with times as distances from
/// `savedAt`. It is replaced when something has changed, at most every half minute, and when the
/// daemon ends. A damaged file counts as missing: all in it can be learned again.
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
}

extension LearnedMemory {
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
}
