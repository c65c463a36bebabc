/// Compares the containers that want to be adopted with the workers that the daemon has. It is
/// pure: it decides, and is notified of the results.
public struct AdoptionLedger: Sendable {
  public enum Action: Hashable, Sendable {
    case adopt(Wish, as: String)
    /// Releases a worker whose container the runtime doesn't have any more, while its process
    /// continues to run.
    case release(String, of: Container)
  }

  public struct Plan: Hashable, Sendable {
    public var actions: [Action] = []
    /// Lines for the log, each only once.
    public var notes: [String] = []
  }

  /// The containers and workers at one time.
  public struct Snapshot: Sendable {
    /// The containers by runtime. A runtime that couldn't be asked is missing.
    public var containers: [String: [Container]]
    public var workers: [ManagedWorker]
    /// The daemon's pid. A new pid is another daemon, which may have released all workers when it
    /// began.
    public var daemon: Int32

    public init(containers: [String: [Container]], workers: [ManagedWorker], daemon: Int32) {
      self.containers = containers
      self.workers = workers
      self.daemon = daemon
    }
  }

  private enum Entry {
    /// The daemon has the container under this name.
    case adopted(Container, name: String, by: Int32)
    /// The user has released the container. It isn't adopted again until it is restarted.
    case released(Container)

    var container: Container {
      switch self {
      case .adopted(let container, _, _), .released(let container): container
      }
    }
  }

  private var entries: [Container.Run: Entry] = [:]
  private var noted: [Container.Run: Set<String>] = [:]

  public init() {}

  /// The name of the worker for a run of a container.
  public func name(of container: Container) -> String? {
    guard case .adopted(_, let name, _) = entries[container.run] else { return nil }
    return name
  }

  public mutating func plan(_ snapshot: Snapshot) -> Plan {
    var plan = Plan()
    let running = snapshot.containers.values.joined().sorted { ($0.id, $0.pid) < ($1.id, $1.pid) }
    forgetEnded(snapshot, running, &plan)
    var owners: [Int32: String] = [:]
    for worker in snapshot.workers { if let pid = worker.pid { owners[pid] = worker.name } }
    var taken = Set(snapshot.workers.map(\.name))
    for container in running {
      let reading = LabelReading(container)
      for problem in reading.problems { logOnce(problem, container, &plan) }
      guard let wish = reading.wish else { continue }
      // This includes a container that two sockets of one runtime list: it has one process.
      if let name = owners[container.pid] {
        entries[container.run] = .adopted(container, name: name, by: snapshot.daemon)
        continue
      }
      guard isWanted(wish, snapshot, &plan) else { continue }
      let name = name(for: wish, taken: taken)
      taken.insert(name)
      owners[container.pid] = name
      plan.actions.append(.adopt(wish, as: name))
    }
    return plan
  }

  /// The workers for the other containers of the same pod, which wake with this one.
  public func peers(of container: Container) -> [String] {
    guard let pod = container.pod else { return [] }
    return entries.values.compactMap { entry in
      guard case .adopted(let other, let name, _) = entry, other.runtime == container.runtime,
        other.pod == pod, other.run != container.run
      else { return nil }
      return name
    }.sorted()
  }

  /// Records that the daemon has adopted a container. Returns a line for the log.
  public mutating func didAdopt(_ wish: Wish, as name: String, by daemon: Int32) -> String {
    entries[wish.container.run] = .adopted(wish.container, name: name, by: daemon)
    return "\(wish.container.title): adopted as \(name), pid \(wish.container.pid): \(wish.terms)"
  }

  /// Records that the daemon has refused a container; it will be asked again. Returns a line for
  /// the log, or nil if it was logged before.
  public mutating func didRefuse(_ wish: Wish, _ reason: String) -> String? {
    var plan = Plan()
    logOnce("not adopted: \(reason)", wish.container, &plan)
    return plan.notes.first
  }

  // MARK: -

  private func name(for wish: Wish, taken: Set<String>) -> String {
    // A worker of an earlier run of the same container is about to be removed by the daemon. The
    // container keeps the name. If the daemon is too slow it refuses, and is asked again.
    let earlier = entries.values.contains { entry in
      guard case .adopted(let container, wish.name, _) = entry else { return false }
      return container.id == wish.container.id && container.pid != wish.container.pid
    }
    if earlier { return wish.name }
    return WorkerNaming.unique(wish.name, wish.container.id, taken: taken)
  }

  private mutating func isWanted(_ wish: Wish, _ snapshot: Snapshot, _ plan: inout Plan) -> Bool {
    let container = wish.container
    switch entries[container.run] {
    case .released: return false
    case .adopted(_, let name, let daemon) where daemon == snapshot.daemon:
      entries[container.run] = .released(container)
      logOnce(
        "\(name) was released; it isn't adopted again until it is restarted", container, &plan)
      return false
    case .adopted, nil: break
    }
    if container.isPaused {
      logOnce("not adopted while it is paused", container, &plan)
      return false
    }
    guard container.isContained else {
      logOnce(
        "not adopted: process \(container.pid) isn't in a container; does \(container.runtime) run "
          + "in another "
          + "pid namespace?", container, &plan)
      return false
    }
    return true
  }

  /// Forgets runs that have ended; the daemon notices that itself. A process that outlives its
  /// container is released.
  private mutating func forgetEnded(
    _ snapshot: Snapshot, _ running: [Container], _ plan: inout Plan
  ) {
    let runs = Set(running.map(\.run))
    for (run, entry) in entries.sorted(by: { ($0.key.id, $0.key.pid) < ($1.key.id, $1.key.pid) }) {
      guard !runs.contains(run), snapshot.containers[entry.container.runtime] != nil else {
        continue
      }
      if case .adopted(let container, let name, _) = entry {
        if snapshot.workers.contains(ManagedWorker(name: name, pid: run.pid)) {
          plan.actions.append(.release(name, of: container))
          // If the release fails, it is tried again at the next poll.
          continue
        }
        plan.notes.append("\(container.title): ended; the worker \(name) is forgotten")
      }
      entries[run] = nil
    }
    // Notes are kept for some time: a runtime that doesn't answer now has these containers again
    // later.
    if noted.count > runs.count + 1000 { noted = noted.filter { runs.contains($0.key) } }
  }

  private mutating func logOnce(_ text: String, _ container: Container, _ plan: inout Plan) {
    guard noted[container.run, default: []].insert(text).inserted else { return }
    plan.notes.append("\(container.title): \(text)")
  }
}
