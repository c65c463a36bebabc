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

  private struct Sources {
    let driver: EngineDriver
    let workers: WorkerRegistry
    /// The ends of a worker's runs; nil if the worker isn't known.
    let exits: (WorkerID) -> [ExitRecord]?
  }

  private let clock: any Timers
  private let write: Write
  /// nil if nothing is kept.
  private var file: LearnedMemoryFile?
  private var sources: Sources?

  /// Reads what an earlier daemon has kept.
  ///
  /// - Parameter path: the file; nil if nothing is kept, because a wrapped program has no later
  ///   daemon.
  init(path: String?, _ clock: any Timers, write: @escaping Write) {
    self.clock = clock
    self.write = write
    file = path.map { LearnedMemoryFile(path: $0, at: clock.now) }
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
    if let damage = file?.damage {
      log(.warning, "what was learned about workers is lost: \(damage)")
    }
  }

  /// What an earlier daemon's engine had learned. Only the first call returns it.
  func consumeLearned() -> Learned { file?.consumeLearned() ?? Learned() }

  /// Sets the source of the facts that are kept from now on.
  ///
  /// - Parameter exits: how a worker's runs ended, the latest last; nil if the worker isn't known.
  func connect(
    _ driver: EngineDriver, _ workers: WorkerRegistry,
    exits: @escaping (WorkerID) -> [ExitRecord]?
  ) {
    sources = Sources(driver: driver, workers: workers, exits: exits)
  }

  /// How earlier runs of a worker of that name ended.
  func rememberedExits(of id: WorkerID) -> [ExitRecord] {
    sources?.exits(id) ?? file?.exits[id.name] ?? []
  }

  /// Saves what has changed, if the last save was at least `LearnedMemoryFile.saveEvery` ago.
  func saveWhenDue() {
    let now = clock.now
    guard file?.isDue(at: now) == true else { return }
    save(at: now)
  }

  /// Saves what has changed now.
  func save() { save(at: clock.now) }

  /// Saves when the daemon ends. Draining the disk's queue waits for this.
  func close() { save() }

  private func save(at now: Instant) {
    guard let path = file?.path, let current = memory(),
      let memory = file?.nextToWrite(current, at: now)
    else { return }
    write(path, memory, now) { [weak self] failure in
      if failure != nil { self?.file?.didFailToWrite() }
    }
  }

  /// The facts as they are now.
  private func memory() -> LearnedMemory? {
    guard let sources else { return nil }
    var memory = LearnedMemory()
    memory.learned = sources.driver.state.learned.limited(to: LearnedMemory.maxWorkers)
    memory.exits = file?.exits ?? [:]
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
