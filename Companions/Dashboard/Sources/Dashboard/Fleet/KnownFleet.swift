import Control

/// The daemon's answers to one poll.
struct Answer: Sendable {
  var daemon: DaemonReport?
  var workers: [WorkerReport] = []
  var ranking: RankingReport?
  /// The rungs by level, as the policy has them; nil if they weren't asked for this time.
  var ladder: [LadderLevel]?
  /// The full reports of workers whose page is open, or whose snapshot is needed. nil means that
  /// there is no such worker.
  var details: [String: WorkerReport?] = [:]
  var explanations: [String: ExplanationReport] = [:]
}

/// One level of the policy's ladder.
struct LadderLevel: Encodable, Hashable, Sendable {
  var level: String
  var rungs: [String]

  /// - Parameter value: A list such as `[hibernate, terminate suspended]`, as `policy` reports it.
  init(_ level: String, parsing value: String) {
    self.level = level
    let list = value.drop { $0 == "[" || $0 == " " }.prefix { $0 != "]" }
    rungs = list.split(separator: ",").map { word in
      String(word.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
  }
}

/// The data of the overview. Sizes are in bytes.
struct FleetReport: Encodable, Sendable {
  /// The daemon's report. It is missing while no daemon answers, and `problem` has the reason then.
  var daemon: DaemonReport?
  var problem: String?
  var ladder: [LadderLevel] = []
  /// The workers, the most recently used first.
  var workers: [Card] = []
  /// The workers that would be terminated or hibernated first.
  var terminated: [String] = []
  var hibernated: [String] = []
}

/// The state of all workers: the last answer, and what must be kept from one to the next.
struct Fleet: Sendable {
  private var rings: [String: FootprintRing] = [:]
  private var ladder: [LadderLevel] = []
  private var snapshots: [String: Snapshot] = [:]
  private var versions = 0
  private(set) var report = FleetReport()

  private struct Snapshot: Sendable {
    /// The time at which the worker fell asleep, or changed its state, on this server's clock.
    var since: Double
    var state: String
    var shown: ShownSnapshot?
  }

  /// Workers that have fallen asleep and whose snapshot wasn't asked for: at most some of them at a
  /// time.
  var unknownSnapshots: [String] {
    report.workers.filter { Card.isAsleep($0.state) && snapshots[$0.name] == nil }.prefix(8)
      .map(\.name)
  }

  /// - Parameter seconds: The time of this server's clock.
  mutating func merge(_ answer: Answer, at seconds: Double) {
    if let ladder = answer.ladder { self.ladder = ladder }
    for worker in answer.workers {
      rings[worker.name, default: FootprintRing()].add(worker.footprint, at: seconds)
    }
    let names = Set(answer.workers.map(\.name))
    rings = rings.filter { names.contains($0.key) }
    updateSnapshots(answer, seconds)
    var cards = answer.workers.map(Card.init)
    for index in cards.indices {
      cards[index].snapshot = snapshots[cards[index].name]?.shown
      cards[index].terminated = rank(of: cards[index].name, in: answer.ranking?.termination)
      cards[index].hibernated = rank(of: cards[index].name, in: answer.ranking?.hibernation)
    }
    report = FleetReport(
      daemon: answer.daemon, ladder: ladder, workers: Self.sorted(cards),
      terminated: answer.ranking?.termination.prefix(3).map(\.worker) ?? [],
      hibernated: answer.ranking?.hibernation.prefix(3).map(\.worker) ?? [])
  }

  /// Records that no daemon answers.
  mutating func lose(_ problem: String) {
    report = FleetReport(problem: problem)
    snapshots = [:]
  }

  /// Records that the daemon is slow. Its last answer is still shown.
  mutating func wait(_ problem: String) { report.problem = problem }

  func points(of worker: String, at seconds: Double) -> [[Int64]] {
    rings[worker]?.points(at: seconds) ?? []
  }

  func allPoints(at seconds: Double) -> [String: [[Int64]]] {
    rings.mapValues { $0.points(at: seconds) }
  }

  func snapshot(of worker: String) -> ShownSnapshot? { snapshots[worker]?.shown }

  // MARK: parts

  /// Sorts the cards as an app switcher does. Workers that were used in the last ten seconds count
  /// as used now, and are in the order of their names: otherwise busy workers would change
  /// positions all the time.
  private static func sorted(_ cards: [Card]) -> [Card] {
    func age(_ card: Card) -> Double {
      card.state == "foreground" || card.secondsSinceUse < 10 ? 0 : card.secondsSinceUse.rounded()
    }
    return cards.sorted { (age($0), $0.name) < (age($1), $1.name) }
  }

  private func rank(of worker: String, in order: [RankingReport.Entry]?) -> Int? {
    order?.firstIndex { $0.worker == worker }.map { $0 + 1 }
  }

  /// Updates the snapshots. Each is asked for once for each sleep, and shown until the worker is
  /// awake.
  private mutating func updateSnapshots(_ answer: Answer, _ seconds: Double) {
    let asleep = answer.workers.filter { Card.isAsleep($0.state) }
    let byName = Dictionary(asleep.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    snapshots = snapshots.filter { name, snapshot in
      guard let worker = byName[name], worker.state == snapshot.state else { return false }
      // The worker may have been awake between two polls.
      return seconds - worker.secondsInState < snapshot.since + 3
    }
    for (name, report) in answer.details {
      guard let worker = byName[name] else { continue }
      let shown = report?.snapshot
      if let snapshot = snapshots[name], snapshot.shown?.mime == shown?.mime, shown?.text == nil {
        continue
      }
      versions += 1
      snapshots[name] = Snapshot(
        since: seconds - worker.secondsInState, state: worker.state,
        shown: shown.map { ShownSnapshot($0, of: name, version: versions) })
    }
  }
}
