import Policy

/// Checks the relations between workers.
struct WorkerChecks {
  var workers: [WorkerConfiguration]
  /// The readers of their entries, by name.
  var readers: [String: MappingReader]
  /// True if all files could be read.
  var isComplete: Bool

  func run() {
    let restarts = Dictionary(workers.map { ($0.name, $0.restart.condition) }) { first, _ in first }
    for worker in workers {
      checkDependencies(of: worker, restarts)
      checkWakes(of: worker)
    }
    checkCircles()
    checkSockets()
  }

  private func checkDependencies(
    of worker: WorkerConfiguration, _ restarts: [String: RestartRules.Condition]
  ) {
    guard let reader = readers[worker.name], isComplete else { return }
    for dependency in worker.dependsOn {
      let name = dependency.worker
      let position = position(of: dependency, in: reader)
      if readers[name] == nil {
        reader.sink.error(
          at: position,
          "`\(shortened(worker.name))` depends on `\(shortened(name))`, which does"
            + " not exist",
          suggestion: reader.sink.isFull ? nil : didYouMean(name, among: workers.map(\.name)))
      } else if dependency.condition == .exited || dependency.condition == .exitedOK,
        restarts[name] == .always || restarts[name] == .unlessStopped
      {
        reader.sink.warning(
          at: position,
          "`\(shortened(name))` is restarted whenever it ends: don't wait for its end",
          suggestion: "write `ready` here, or `restart: on-failure` there")
      }
    }
  }

  /// Checks `wake_with`. Circles are allowed: such workers wake together.
  private func checkWakes(of worker: WorkerConfiguration) {
    guard let reader = readers[worker.name], isComplete else { return }
    for name in worker.wakeWith where name == worker.name || readers[name] == nil {
      let isItself = name == worker.name
      reader.sink.error(
        at: position(ofWake: name, in: reader),
        isItself
          ? "`\(shortened(name))` is woken with itself"
          : "`\(shortened(name))`, which is woken with `\(shortened(worker.name))`, does not exist",
        suggestion: isItself
          ? "remove it from `wake_with`"
          : reader.sink.isFull
            ? nil : didYouMean(name, among: workers.map(\.name).filter { $0 != worker.name }))
    }
  }

  private func position(ofWake name: String, in reader: MappingReader) -> Position? {
    guard case .sequence(let names)? = reader.node("wake_with") else { return nil }
    // A name that contains a variable is written in another way.
    return names.first { $0.scalar?.string == name }?.position ?? reader.positions["wake_with"]
  }

  private func position(of dependency: Dependency, in reader: MappingReader) -> Position? {
    reader.positions.keys["depends_on.\(dependency.worker)"] ?? reader.positions["depends_on"]
  }

  private func checkCircles() {
    let needs = workers.map { ($0.name, $0.dependsOn.map(\.worker)) }
    guard let circle = DependencyOrder.cycle(in: needs), let first = circle.first,
      let reader = readers[first]
    else { return }
    let next = circle.count > 1 ? circle[1] : first
    let position = position(of: Dependency(next), in: reader)
    guard circle.count > 1 else {
      return reader.sink.error(at: position, "`\(shortened(first))` depends on itself")
    }
    let shown = circle.count > 8 ? Array(circle.prefix(7)) + ["…"] : circle
    let way = (shown + [first]).map { "`\(shortened($0))`" }.joined(separator: " → ")
    reader.sink.error(
      at: position, "these workers depend on each other in a circle: \(way)",
      suggestion: "none of them could start; remove one of the dependencies")
  }

  private func checkSockets() {
    // The sockets are sorted by what two conflicting ones have in common, so that not all pairs
    // must be compared.
    var seen: [String: [(socket: ListenSocket, location: String, worker: String)]] = [:]
    for worker in workers {
      guard let reader = readers[worker.name] else { continue }
      let position = reader.positions["listen"]
      for socket in worker.listen {
        let key = socket.address.text.split(separator: ":").last.map(String.init) ?? ""
        if let other = seen[key]?.first(where: { $0.socket.conflicts(with: socket) }) {
          let owner = other.worker == worker.name ? "already" : "by `\(shortened(other.worker))`"
          reader.sink.error(
            at: reader.positions.keys["listen.\(socket.name)"] ?? position,
            "`\(shortened(socket.address.text))` is taken \(owner), at \(other.location)",
            suggestion: "choose another port, path or address")
        }
        seen[key, default: []].append((socket, reader.sink.location(position), worker.name))
      }
    }
  }
}
