import Lifecycle
import Linux
import Policy

/// Keeps on disk what the engine has learned, and how workers' last runs ended. Belongs to the loop's thread.
final class LearnedMemoryKeeper {
  /// Replaces the file, on another thread. `then` is called on the loop, later, with the reason if that
  /// failed; on a disk that doesn't answer it isn't called.
  typealias Write = (
    _ path: String, _ memory: Memory, _ now: Instant, _ then: @escaping (String?) -> Void
  ) -> Void

  private struct Sources {
    let driver: EngineDriver
    let workers: WorkerRegistry
    /// nil: the worker isn't known.
    let exits: (WorkerID) -> [ExitRecord]?
  }

  private let clock: any Timers
  private let write: Write
  /// nil: nothing is kept.
  private var file: MemoryKeeper?
  private var sources: Sources?

  /// Reads what an earlier daemon has kept.
  ///
  /// - Parameter path: nil: nothing is kept. A wrapped program has no later daemon.
  init(path: String?, _ clock: any Timers, write: @escaping Write) {
    self.clock = clock
    self.write = write
    file = path.map { MemoryKeeper(path: $0, at: clock.now) }
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
        // Logged here: at the daemon's end its loop gets no outcome any more.
        if let failure { log(.warning, "can't write what was learned about workers: \(failure)") }
        done(failure)
      }
    }
    if let damage = file?.damage {
      log(.warning, "what was learned about workers is lost: \(damage)")
    }
  }

  /// What an earlier daemon's engine had learned; only the first call returns it.
  func takeLearned() -> Learned { file?.takeLearned() ?? Learned() }

  /// The source of the facts that are kept from now on.
  ///
  /// - Parameter exits: how a worker's runs ended, the latest last; nil: it isn't known.
  func connect(
    _ driver: EngineDriver, _ workers: WorkerRegistry,
    exits: @escaping (WorkerID) -> [ExitRecord]?
  ) {
    sources = Sources(driver: driver, workers: workers, exits: exits)
  }

  /// How earlier runs of that name ended.
  func rememberedExits(of id: WorkerID) -> [ExitRecord] {
    sources?.exits(id) ?? file?.exits[id.name] ?? []
  }

  /// Saves what has changed, `MemoryKeeper.saveEvery` after the last time at the earliest.
  func saveWhenDue() {
    let now = clock.now
    guard file?.isDue(at: now) == true else { return }
    save(at: now)
  }

  /// Saves now what has changed.
  func save() { save(at: clock.now) }

  /// At the daemon's end; draining the queue of the disk waits for it.
  func close() { save() }

  private func save(at now: Instant) {
    guard let path = file?.path, let current = memory(),
      let memory = file?.nextToWrite(current, at: now)
    else { return }
    write(path, memory, now) { [weak self] failure in
      if failure != nil { self?.file?.wasNotWritten() }
    }
  }

  /// As it is now.
  private func memory() -> Memory? {
    guard let sources else { return nil }
    var memory = Memory()
    memory.learned = sources.driver.state.learned.limited(to: Memory.maxWorkers)
    memory.exits = file?.exits ?? [:]
    for id in sources.workers.keys {
      if let exits = sources.exits(id), !exits.isEmpty { memory.exits[id.name] = exits }
    }
    if memory.exits.count > Memory.maxWorkers {
      let order = memory.exits.sorted {
        ($1.value.last?.at ?? 0, $0.key) < ($0.value.last?.at ?? 0, $1.key)
      }
      memory.exits = Dictionary(
        uniqueKeysWithValues: order.prefix(Memory.maxWorkers).map { ($0.key, $0.value) })
    }
    return memory
  }
}
