/// The order in which `top` and `ps --sort` show workers. Workers with an equal value are in the
/// order of their names.
package enum WorkerOrder: String, Hashable, Sendable, CaseIterable {
  case footprint, name, state, `for`, cpu, saved

  /// The name of the order, and which workers come first.
  package var text: String {
    switch self {
    case .footprint: "footprint, largest first"
    case .name: "name"
    case .state: "state"
    case .for: "time in the state, shortest first"
    case .cpu: "processor time, most first"
    case .saved: "saved memory, most first"
    }
  }

  package var next: WorkerOrder {
    let all = Self.allCases
    let index = all.firstIndex(of: self).map { $0 + 1 } ?? 0
    return index < all.count ? all[index] : all[0]
  }

  /// - Parameters:
  ///   - cpu: processor use in percent, by worker. Workers without a value are last.
  ///   - isReversed: reverses the order. Workers with an equal value stay in the order of their
  ///     names.
  package func sorted(
    _ workers: [WorkerReport], cpu: [String: Double] = [:], isReversed: Bool = false
  ) -> [WorkerReport] {
    let keyed = workers.map { (key: key(of: $0, cpu), worker: $0) }
    return keyed.sorted { one, other in
      if one.key != other.key { return (one.key < other.key) != isReversed }
      let (name, second) = (one.worker.name, other.worker.name)
      return self == .name && isReversed ? second < name : name < second
    }.map(\.worker)
  }

  private func key(of worker: WorkerReport, _ cpu: [String: Double]) -> Double {
    switch self {
    case .footprint: -Double(worker.footprint)
    case .name: 0
    case .state: Double(workerStates.firstIndex(of: worker.state) ?? workerStates.count)
    case .for: worker.secondsInState
    case .cpu: -(cpu[worker.name] ?? -1)
    case .saved: -Double(worker.saved ?? -1)
    }
  }
}

/// The values of `WorkerReport.state`, in the order of a worker's life. A newer daemon may have
/// others.
package let workerStates = [
  "launching", "foreground", "background", "suspending", "suspended", "hibernating", "hibernated",
  "resuming", "terminating", "terminated",
]
