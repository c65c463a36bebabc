import Policy
import Testing

@testable import ContainerPlan

@Suite("Containers that are wanted, against workers that the daemon has") struct LedgerTests {
  private func container(
    _ id: String, pid: Int32, name: String? = nil, runtime: String = "docker",
    labels: [String: String] = ["dormouse.policy": "server"]
  ) -> Container {
    Container(runtime: runtime, id: id, name: name ?? id, labels: labels, pid: pid)
  }

  private func snapshot(
    _ containers: [Container], _ workers: [(String, Int32?)] = [], daemon: Int32 = 1
  ) -> AdoptionLedger.Snapshot {
    AdoptionLedger.Snapshot(
      containers: ["docker": containers],
      workers: workers.map { ManagedWorker(name: $0.0, pid: $0.1) }, daemon: daemon)
  }

  /// Adopts all containers of a plan, and returns their names.
  private func adopt(
    _ ledger: inout AdoptionLedger, _ snapshot: AdoptionLedger.Snapshot
  ) -> [String] {
    ledger.plan(snapshot).actions.compactMap { action in
      guard case .adopt(let wish, let name) = action else { return nil }
      _ = ledger.didAdopt(wish, as: name, by: snapshot.daemon)
      return name
    }
  }

  @Test("A container is adopted once, and not by a second look")
  func once() {
    var ledger = AdoptionLedger()
    let web = container("web", pid: 10)
    #expect(adopt(&ledger, snapshot([web])) == ["web"])
    #expect(ledger.plan(snapshot([web], [("web", 10)])) == .init())
    #expect(ledger.name(of: web) == "web")
  }

  @Test("After a restart of this program what the daemon has isn't adopted again")
  func restarted() {
    var ledger = AdoptionLedger()
    #expect(ledger.plan(snapshot([container("web", pid: 10)], [("other", 10)])) == .init())
  }

  @Test("A new daemon that has released its workers adopts them again")
  func newDaemon() {
    var ledger = AdoptionLedger()
    let web = container("web", pid: 10)
    #expect(adopt(&ledger, snapshot([web])) == ["web"])
    #expect(adopt(&ledger, snapshot([web], daemon: 2)) == ["web"])
  }

  @Test("A worker that you have released isn't adopted again until its container is restarted")
  func released() {
    var ledger = AdoptionLedger()
    let web = container("web", pid: 10)
    #expect(adopt(&ledger, snapshot([web])) == ["web"])
    _ = ledger.plan(snapshot([web], [("web", 10)]))
    let plan = ledger.plan(snapshot([web]))
    #expect(plan.actions.isEmpty && plan.notes.count == 1, "\(plan)")
    #expect(plan.notes[0].contains("web was released"))
    #expect(ledger.plan(snapshot([web])) == .init())
    #expect(ledger.plan(snapshot([web], daemon: 2)) == .init())
    #expect(adopt(&ledger, snapshot([container("web", pid: 11)])) == ["web"])
  }

  @Test("A restarted container keeps its name, also before the daemon has forgotten its last run")
  func nextRun() {
    var ledger = AdoptionLedger()
    #expect(adopt(&ledger, snapshot([container("web", pid: 10)])) == ["web"])
    #expect(adopt(&ledger, snapshot([container("web", pid: 11)], [("web", 10)])) == ["web"])
  }

  @Test("A container whose name another worker has gets its own name")
  func taken() {
    var ledger = AdoptionLedger()
    let both = [
      container("aaaaaaaa", pid: 10, name: "x"), container("bbbbbbbb", pid: 11, name: "x"),
    ]
    #expect(adopt(&ledger, snapshot(both, [("x", 5)])) == ["x-aaaaaa", "x-bbbbbb"])
  }

  @Test("A container that two sockets list is adopted once")
  func twice() {
    var ledger = AdoptionLedger()
    var snapshot = snapshot([container("web", pid: 10)])
    snapshot.containers["podman"] = [container("web", pid: 10, runtime: "podman")]
    #expect(adopt(&ledger, snapshot) == ["web"])
  }

  @Test("Containers of one pod are peers while the daemon has them")
  func peers() {
    var ledger = AdoptionLedger()
    var containers = [
      container("web", pid: 10), container("db", pid: 11), container("x", pid: 12),
      container("alone", pid: 13),
    ]
    for (index, pod) in ["a", "a", "b"].enumerated() { containers[index].pod = pod }
    #expect(ledger.peers(of: containers[0]).isEmpty)
    #expect(adopt(&ledger, snapshot(containers)).count == 4)
    #expect(ledger.peers(of: containers[0]) == ["db"])
    #expect(ledger.peers(of: containers[2]).isEmpty && ledger.peers(of: containers[3]).isEmpty)
    _ = ledger.plan(snapshot([containers[0]]))
    #expect(ledger.peers(of: containers[0]).isEmpty)
  }

  @Test("When a runtime doesn't answer, nothing is decided about its containers")
  func silent() {
    var ledger = AdoptionLedger()
    #expect(adopt(&ledger, snapshot([container("web", pid: 10)])) == ["web"])
    let silent = AdoptionLedger.Snapshot(
      containers: [:], workers: [ManagedWorker(name: "web", pid: 10)], daemon: 1)
    #expect(ledger.plan(silent) == .init())
  }

  @Test("A container that has ended is forgotten, and a process that outlives it is released")
  func ended() {
    var ledger = AdoptionLedger()
    let both = [container("a", pid: 10), container("b", pid: 11)]
    #expect(adopt(&ledger, snapshot(both)) == ["a", "b"])
    let plan = ledger.plan(snapshot([], [("b", 11)]))
    #expect(plan.actions == [.release("b", of: both[1])])
    #expect(plan.notes == ["a (docker a): ended; the worker a is forgotten"])
    #expect(ledger.plan(snapshot([])).notes == ["b (docker b): ended; the worker b is forgotten"])
    #expect(ledger.plan(snapshot([])) == .init())
  }

  @Test(
    "A paused container and a process outside of containers aren't adopted, and each is said once")
  func unfit() {
    var ledger = AdoptionLedger()
    var (paused, outside) = (container("p", pid: 10), container("o", pid: 1))
    paused.isPaused = true
    outside.isContained = false
    let plan = ledger.plan(snapshot([paused, outside]))
    #expect(plan.actions.isEmpty && plan.notes.count == 2, "\(plan)")
    #expect(ledger.plan(snapshot([paused, outside])) == .init())
    paused.isPaused = false
    #expect(adopt(&ledger, snapshot([paused, outside])) == ["p"])
  }

  @Test("A refusal is tried again at each look, and logged when it changes")
  func refused() throws {
    var ledger = AdoptionLedger()
    let web = container("web", pid: 10)
    for (text, isNew) in [("a", true), ("a", false), ("b", true)] {
      guard case .adopt(let wish, _)? = ledger.plan(snapshot([web])).actions.first else {
        Issue.record("it isn't tried")
        return
      }
      #expect((ledger.didRefuse(wish, text) != nil) == isNew)
    }
  }

  // MARK: any history

  private static func labels(_ random: inout Random) -> [String: String] {
    let all = [
      ("dormouse.policy", ["server", "server", "../x", ""]),
      ("dormouse.enable", ["true", "false", "?"]), ("dormouse.name", ["x", "y", "/"]),
      ("dormouse.importance", ["5", "-1"]), ("dormouse.hibernate.after", ["5m", "5"]),
      ("other", ["1"]),
    ]
    var labels: [String: String] = [:]
    for (key, values) in all where random.below(2) == 0 {
      labels[key] = values[random.below(values.count)]
    }
    return labels
  }

  @Test(
    "In any history no process is adopted twice, names are valid, and the plan comes to rest",
    arguments: 1...200)
  func histories(seed: UInt64) {
    var random = Random(state: seed)
    var ledger = AdoptionLedger()
    var containers: [Container] = []
    var workers: [ManagedWorker] = [ManagedWorker(name: "x", pid: nil)]
    var (daemon, pid): (Int32, Int32) = (1, 100)
    for step in 0..<40 {
      switch random.below(6) {
      case 0, 1:
        pid += 1
        containers.append(
          container(
            "c\(step)", pid: pid, name: ["x", "y", "", "ü", "-"][random.below(5)],
            labels: Self.labels(&random)))
      case 2 where !containers.isEmpty:
        let ended = containers.remove(at: random.below(containers.count))
        if random.below(4) > 0 { workers.removeAll { $0.pid == ended.pid } }
      case 3 where !containers.isEmpty:
        // It is restarted.
        let index = random.below(containers.count)
        workers.removeAll { $0.pid == containers[index].pid }
        pid += 1
        containers[index].pid = pid
      case 4:
        daemon += 1
        if random.below(2) == 0 { workers.removeAll { $0.pid != nil } }
      case 5 where random.below(3) == 0: if !workers.isEmpty { workers.removeLast() }
      default: break
      }
      // A few polls finish all actions.
      var last: AdoptionLedger.Plan?
      for _ in 0..<3 {
        let snapshot = AdoptionLedger.Snapshot(
          containers: ["docker": containers], workers: workers, daemon: daemon)
        let plan = ledger.plan(snapshot)
        last = plan
        apply(plan, &ledger, &workers, daemon)
      }
      #expect(last == .init(), "\(String(describing: last)), step \(step)")
      // A valid container is managed, or was released, whatever others do.
      for each in containers where LabelReading(each).wish == nil {
        #expect(!workers.contains { $0.pid == each.pid })
      }
    }
  }

  private func apply(
    _ plan: AdoptionLedger.Plan, _ ledger: inout AdoptionLedger,
    _ workers: inout [ManagedWorker], _ daemon: Int32
  ) {
    for action in plan.actions {
      switch action {
      case .adopt(let wish, let name):
        #expect(NameRule.allows(name))
        #expect(!workers.contains { $0.name == name || $0.pid == wish.container.pid }, "\(name)")
        workers.append(ManagedWorker(name: name, pid: wish.container.pid))
        _ = ledger.didAdopt(wish, as: name, by: daemon)
      case .release(let name, _): workers.removeAll { $0.name == name }
      }
    }
  }
}

/// A SplitMix64 generator: the same seed gives the same numbers.
struct Random {
  var state: UInt64

  mutating func below(_ limit: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((mixed ^ (mixed >> 31)) % UInt64(limit))
  }
}
