/// One entry of `depends_on:`: a worker, and how far it must be before another is started.
public struct Dependency: Hashable, Sendable {
  /// How far the worker must be.
  public enum Condition: String, Hashable, Sendable, CaseIterable {
    /// The worker has been launched.
    case started
    /// The worker is ready, in whatever way it reports that. A worker without a report is ready
    /// once launched.
    case ready
    /// The worker has ended with exit code 0.
    case exitedOK = "exited_ok"
    /// The worker has ended, with any exit status.
    case exited
  }
  public var worker: String
  public var condition: Condition

  public init(_ worker: String, _ condition: Condition = .ready) {
    self.worker = worker
    self.condition = condition
  }

  /// How far a worker is since the last request to start it.
  public enum Progress: Hashable, Sendable {
    case notStarted
    case launched
    case ready
    /// The worker has ended. `succeeded`: with exit code 0.
    case ended(succeeded: Bool)
  }

  /// Whether a condition is met, may still be met, or can't be met without a restart.
  public enum Verdict: Hashable, Sendable { case met, waiting, impossible }

  /// Whether the other worker is far enough. `impossible`: it has ended, and won't meet the
  /// condition without a restart.
  public func verdict(_ progress: Progress) -> Verdict {
    switch (condition, progress) {
    case (_, .notStarted): .waiting
    case (.started, _): .met
    case (.ready, .ready): .met
    case (.ready, .launched): .waiting
    // A worker that has done its work was ready.
    case (.ready, .ended(let succeeded)): succeeded ? .met : .impossible
    case (.exitedOK, .ended(let succeeded)): succeeded ? .met : .impossible
    case (.exited, .ended): .met
    case (.exitedOK, _), (.exited, _): .waiting
    }
  }
}

/// The order in which workers start and stop.
public enum DependencyOrder {
  /// Every worker with the names of those that it depends on, in the order of declaration. Names
  /// that aren't among the workers are ignored.
  public typealias Needs = [(name: String, needs: [String])]

  /// One worker after the other, in the order of declaration, but each after those that it needs.
  /// Workers that wait for a cycle stay in the order of declaration.
  public static func sequence(_ needs: Needs) -> [String] {
    let byName = Dictionary(needs.map { ($0.name, $0.needs) }) { first, _ in first }
    var result: [String] = []
    var seen: Set<String> = []
    // Not recursive: a chain may be thousands of workers long.
    var stack: [(name: String, left: [String].SubSequence)] = []
    for worker in needs where seen.insert(worker.name).inserted {
      stack.append((worker.name, worker.needs[...]))
      while let top = stack.last {
        guard let next = top.left.first else {
          result.append(top.name)
          stack.removeLast()
          continue
        }
        stack[stack.count - 1].left.removeFirst()
        if let further = byName[next], seen.insert(next).inserted {
          stack.append((next, further[...]))
        }
      }
    }
    return result
  }

  /// Workers that wait for each other in a cycle, beginning with the one that was declared first:
  /// `[a, b]` means that a needs b, and b needs a. `nil`: there is none.
  public static func cycle(in needs: Needs) -> [String]? {
    // Such a worker needs another one of them, so this walk returns to its start.
    let stuck = stuck(needs)
    let next = Dictionary(stuck.map { ($0.name, $0.needs) }) { first, _ in first }
    guard let first = stuck.first?.name else { return nil }
    var path: [String] = []
    var positions: [String: Int] = [:]
    var name = first
    while positions[name] == nil {
      positions[name] = path.count
      path.append(name)
      guard let other = next[name]?.first(where: { next[$0] != nil }) else { return nil }
      name = other
    }
    let circle = Array(path[(positions[name] ?? 0)...])
    let members = Set(circle)
    let start = stuck.first { members.contains($0.name) }.flatMap { circle.firstIndex(of: $0.name) }
    return Array(circle[(start ?? 0)...] + circle[..<(start ?? 0)])
  }

  /// The workers that wait for a cycle. The algorithm (Kahn) takes linear time, because hostile
  /// configurations have thousands of workers.
  private static func stuck(_ needs: Needs) -> Needs {
    let positions = Dictionary(needs.enumerated().map { ($1.name, $0) }) { first, _ in first }
    var dependents: [[Int]] = Array(repeating: [], count: needs.count)
    var missing = Array(repeating: 0, count: needs.count)
    for (index, worker) in needs.enumerated() {
      for need in Set(worker.needs) {
        guard let needed = positions[need] else { continue }
        dependents[needed].append(index)
        missing[index] += 1
      }
    }
    var free = missing.indices.filter { missing[$0] == 0 }
    while let index = free.popLast() {
      for dependent in dependents[index] {
        missing[dependent] -= 1
        if missing[dependent] == 0 { free.append(dependent) }
      }
    }
    return zip(needs, missing).filter { $1 > 0 }.map(\.0)
  }
}
