import Deciding
import Journal
import Lifecycle
import Policy
import Simulation

/// The journal of a simulated fleet, whose uses, footprints and costs are known.
struct FleetJournal {
  private(set) var segments: [[UInt8]] = []
  let report: FleetReport

  init(
    _ trace: Trace, policy: LifecyclePolicy, memory: ByteCount = .gigabytes(4),
    profiles: [WorkerID: WorkerProfile] = [:],
    machine change: (inout MachineModel) -> Void = { _ in }
  ) throws {
    let writer = Writer()
    var machine = MachineModel(memory: memory)
    machine.cooperating = 0
    machine.launchedShare = 1
    change(&machine)
    var simulation = FleetSimulation(
      trace: trace, machine: machine, policy: policy, profiles: profiles)
    writer.begin(Engine(policy: policy), at: .zero)
    simulation.observer = { event, directives, _, now in writer.record(event, directives, at: now) }
    report = simulation.run()
    // The last record marks the end of the history.
    writer.record(
      .disk(DiskReading(total: .zero, free: .zero, images: .zero, writtenToday: .zero)), [],
      at: Instant(nanoseconds: trace.length * 1_000_000))
    segments = [writer.encoder?.drainBytes() ?? []]
  }

  /// The history of an engine that got these events, at times in seconds.
  static func history(
    of events: [(at: Int64, event: Event)], policy: LifecyclePolicy
  ) -> RecordedHistory {
    let writer = Writer()
    var engine = Engine(policy: policy)
    writer.begin(engine, at: .zero)
    for (at, event) in events {
      let now = Instant(nanoseconds: at * 1_000_000_000)
      writer.record(event, engine.handle(event, at: now), at: now)
    }
    let bytes = writer.encoder?.drainBytes() ?? []
    var reader = HistoryReader()
    return reader.read([JournalSegment(name: "0") { bytes }])
  }

  var journal: [JournalSegment] {
    segments.enumerated().map { index, bytes in JournalSegment(name: "\(index)") { bytes } }
  }

  func history(since: WallTime? = nil) -> RecordedHistory {
    var reader = HistoryReader(since: since)
    return reader.read(journal)
  }

  static let began = WallTime(nanoseconds: 1_780_000_000_000_000_000)

  private final class Writer {
    var encoder: JournalEncoder?

    func begin(_ engine: Engine, at now: Instant) {
      do {
        encoder = try JournalEncoder(
          engine, version: "test", run: "1", segment: 0, wall: FleetJournal.began, at: now)
      } catch { preconditionFailure("\(error)") }
    }

    func record(_ event: Event, _ directives: [Directive], at now: Instant) {
      do { try encoder?.record(event, at: now, directives: directives) } catch {
        preconditionFailure("\(error)")
      }
    }
  }
}

/// The policy `server`, reduced to what these tests need.
func served(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> LifecyclePolicy {
  var policy = LifecyclePolicy(name: "test")
  policy.foreground = ForegroundRules(mode: .activity, max: nil, idleAfter: .seconds(60))
  policy.background.suspendAfter = .seconds(30)
  policy.hibernate.maxFootprint = nil
  policy.hibernate.minFootprint = .megabytes(4)
  policy.hibernate.after = .seconds(120)
  policy.hibernate.order = [.regret]
  policy.hibernate.disk.dailyWrites = .gigabytes(100)
  policy.terminate.order = [.band, .recency, .footprint]
  change(&policy)
  return policy
}

/// A trace of workers that are used at intervals of `every` seconds.
func periodic(
  _ workers: [(name: String, megabytes: Int64, every: Int64)], hours: Int64 = 30,
  duration: Int32 = 300
) -> Trace {
  let length = hours * 3_600_000
  var trace = Trace(
    name: "test", length: length,
    workers: workers.map {
      TraceWorker(name: $0.name, footprint: .megabytes($0.megabytes), launch: .milliseconds(800))
    }, uses: [], others: [Trace.HostChange(at: 0, share: 0.1)])
  for (number, worker) in workers.enumerated() {
    for at in stride(from: 1000 + Int64(number) * 777, to: length, by: Int(worker.every) * 1000) {
      trace.uses.append(Trace.Use(at: at, worker: Int32(number), duration: duration))
    }
  }
  trace.uses.sort { ($0.at, $0.worker) < ($1.at, $1.worker) }
  return trace
}
