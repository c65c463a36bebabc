import Deciding
import Journal
import Lifecycle
import Policy
import Simulation
import Testing

@Suite("The recorded history as a trace") struct HistoryTests {
  @Test("A journal gives back when each worker was used, its footprint and its launch time")
  func uses() throws {
    let trace = periodic([("api", 40, 1200), ("web", 20, 3600)])
    let history = try FleetJournal(trace, policy: served()).history()
    #expect(history.problems.isEmpty && history.gaps == 0)
    #expect(history.from == FleetJournal.began)
    #expect(history.trace.length == trace.length)
    #expect(history.trace.workers.map(\.name) == ["api", "web"])
    #expect(history.trace.useCount == trace.useCount)
    for (read, real) in zip(history.trace.uses, trace.uses) {
      #expect(read.worker == real.worker && (read.at - real.at).magnitude < 1500)
    }
    for (read, real) in zip(history.trace.workers, trace.workers) {
      #expect((read.footprint.bytes - real.footprint.bytes).magnitude < 4 << 20)
      #expect((read.launch - real.launch) / .milliseconds(1) < 50)
      #expect(read.leak == .zero)
    }
  }

  @Test("A simulation of the history holds and wakes about as much as the journal's daemon did")
  func again() throws {
    let trace = TraceGenerator(
      pattern: .daily, workers: 12, length: 8 * 3_600_000, seed: 5, usesPerHour: 3
    ).trace()
    let recorded = try FleetJournal(trace, policy: served())
    let history = recorded.history()
    var simulation = FleetSimulation(
      trace: history.trace, machine: history.machine(), policy: history.policy,
      profiles: history.profiles)
    let again = simulation.run()
    func near(_ one: Double, _ other: Double, _ share: Double) -> Bool {
      (one - other).magnitude <= share * max(one, other)
    }
    let first = recorded.report
    #expect(near(again.memoryGigabyteHours, first.memoryGigabyteHours, 0.1))
    #expect(near(again.wake.p50, first.wake.p50, 0.2))
    let held = history.recorded.byteSeconds / 3600 / 1_073_741_824
    #expect(near(held, first.memoryGigabyteHours, 0.1))
    let wakes = simulation.accounts.values.reduce(0) { $0 + $1.wakes }
    #expect(near(Double(wakes), Double(history.recorded.wakes), 0.1))
    #expect(near(Double(again.hibernations), Double(first.hibernations), 0.1))
  }

  @Test func `Costs of resumes and images come from the journal`() throws {
    let trace = periodic([("a", 10, 1200), ("b", 80, 1200), ("c", 200, 1800)], hours: 6)
    let history = try FleetJournal(trace, policy: served()).history()
    let machine = history.machine()
    let (real, base) = (MachineModel(memory: .gigabytes(4)), machine.resumeBase / .milliseconds(1))
    #expect((base - 3.6).magnitude < 2)
    let rate = machine.resumePerMegabyte / real.resumePerMegabyte
    #expect((rate - 1).magnitude < 0.1)
    #expect((machine.imageShare - real.imageShare).magnitude < 0.01)
    #expect(machine.memory == .gigabytes(4))
    #expect(history.description(machine).measured.count == 2)
  }

  /// Two workers in use all the time, which are trimmed.
  private func trimmed(_ change: (inout MachineModel) -> Void) throws -> FleetJournal {
    let rules = served {
      $0.trim.after = .seconds(120)
      $0.trim.minGain = .megabytes(1)
    }
    return try FleetJournal(
      periodic([("api", 100, 20), ("web", 40, 20)], hours: 3), policy: rules, machine: change)
  }

  @Test("Trims of the history are simulated with what each worker's left in RAM and brought back")
  func trims() throws {
    let (api, web) = (WorkerID("api"), WorkerID("web"))
    let recorded = try trimmed { $0.measuredTrims[api] = .init(left: 0.2, returned: 0.25) }
    let history = recorded.history()
    let machine = history.machine()
    func near(_ one: Double?, _ other: Double) -> Bool {
      one.map { ($0 - other).magnitude < 0.02 * max(1, other) } ?? false
    }
    #expect(near(machine.measuredTrims[api]?.left, 0.2))
    #expect(near(machine.measuredTrims[api]?.returned, 0.25))
    #expect(near(machine.measuredTrims[web]?.left, 0.08))
    #expect(near(machine.measuredTrims[web]?.returned, 0.1))
    #expect(machine.trim.left > 0.08 && machine.trim.left < 0.2)
    #expect(history.recorded.trims == recorded.report.trims && recorded.report.trims >= 2)
    #expect(history.description(machine).measured.last?.hasPrefix("trims leave ") == true)
    let held = history.recorded.byteSeconds / 3600 / 1_073_741_824
    #expect(near(held, recorded.report.memoryGigabyteHours))
    let saved = history.recorded.savedByteSeconds / 3600 / 1_073_741_824
    #expect(near(saved, recorded.report.trimmedGigabyteHours) && saved > 0.2)
    var simulation = FleetSimulation(
      trace: history.trace, machine: machine, policy: history.policy, profiles: history.profiles)
    let again = simulation.run()
    #expect(again.trims == recorded.report.trims)
    #expect(near(again.memoryGigabyteHours, recorded.report.memoryGigabyteHours))
  }

  @Test("Only memory that trims have moved counts as saved, and not what the kernel has swapped")
  func swappedByKernel() throws {
    let web = WorkerID("web")
    let swapped = Event.swapped(web, .megabytes(30))
    let trim = TrimResult(
      residentBefore: .megabytes(10), residentAfter: .megabytes(2), swapped: .megabytes(38),
      duration: .zero)
    let history = FleetJournal.history(
      of: [
        (0, .adopted(web, WorkerProfile(policy: served()), .background)), (1, swapped),
        (1, .footprint(web, .megabytes(40))), (11, .trimmed(web, trim)), (21, swapped),
        (21, .footprint(web, .megabytes(40))), (24, .filled(web, swapped: .zero)),
      ], policy: served())
    let saved = history.recorded.savedByteSeconds / 1_048_576
    #expect((saved - (10 * 38 + 3 * 30)).magnitude < 1)
  }

  @Test(
    "If no trim of the history succeeded, none is simulated, and a worker on timers stays awake")
  func noTrims() throws {
    let history = try trimmed { $0.trim.left = 1 }.history()
    #expect(history.machine().trim.left == 1)
    #expect(history.description(history.machine()).measured.last?.hasPrefix("no trim") == true)
    let job = WorkerID("job")
    let rules = served { $0.trim.after = .seconds(3600) }
    let awake = try FleetJournal(periodic([("job", 40, 1800)], hours: 3), policy: rules) {
      $0.staysAwake = [job]
    }
    #expect(awake.report.suspensions == 0)
    #expect(awake.history().machine().staysAwake == [job])
  }

  @Test func `A worker that gains memory for as long as it runs has a leak in the trace`() throws {
    var trace = periodic([("leaky", 30, 600), ("sound", 30, 600)], hours: 8)
    trace.workers[0].leak = .megabytes(10)
    let history = try FleetJournal(trace, policy: served { $0.hibernate.enabled = false }).history()
    let read = history.trace.workers[0]
    #expect((Double(read.leak.bytes) / 1_048_576 - 10).magnitude < 2)
    #expect((Double(read.footprint.bytes) / 1_048_576 - 30).magnitude < 10)
    #expect(history.trace.workers[1].leak == .zero)
  }

  @Test func `The rest of the machine's memory is what the workers don't hold`() throws {
    var trace = periodic([("api", 40, 1200)])
    trace.others = [
      Trace.HostChange(at: 0, share: 0.25), Trace.HostChange(at: 36_000_000, share: 0.5),
    ]
    let history = try FleetJournal(trace, policy: served()).history()
    let read = history.trace.others
    #expect(read.contains { $0.at < 5000 && $0.share == 0.25 })
    #expect(read.contains { ($0.at - 36_000_000).magnitude < 5000 && $0.share == 0.5 })
  }

  @Test func `A use without a pause is one use, however long it is`() throws {
    let trace = periodic([("api", 40, 7200)], hours: 8, duration: 600_000)
    let history = try FleetJournal(trace, policy: served()).history()
    // The fleet shows a sign at the beginning and at the end of a long use.
    #expect(history.trace.useCount <= 2 * trace.useCount)
    #expect(history.trace.uses.allSatisfy { $0.duration <= 60_000 })
  }

  @Test("Workers that ended by themselves end in the trace, and run from the start if they did")
  func endsAndStarts() throws {
    var trace = periodic([("job", 40, 36_000), ("api", 20, 1200)])
    trace.workers[1].start = .running
    trace.ends = [Trace.End(at: 7_200_000, worker: 0)]
    let history = try FleetJournal(trace, policy: served()).history()
    let job = history.trace.workers.firstIndex { $0.name == "job" }
    #expect(history.trace.ends.map(\.worker) == [Int32(job ?? -1)])
    #expect((history.trace.ends.first?.at ?? 0) == 7_200_000)
    #expect(history.trace.workers.first { $0.name == "api" }?.start == .running)
  }

  @Test("With a beginning, only the later part is the history, with the workers that ran then")
  func since() throws {
    let trace = periodic([("api", 40, 1200), ("web", 20, 3600)])
    let journal = try FleetJournal(trace, policy: served())
    let begin = WallTime(nanoseconds: FleetJournal.began.nanoseconds + 20 * 3_600_000_000_000)
    let history = journal.history(since: begin)
    #expect((history.length - .seconds(36_000)) / .seconds(1) < 2)
    #expect(history.trace.useCount == trace.suffix(10 * 3_600_000).useCount)
    #expect(history.trace.workers.allSatisfy { $0.start != .absent })
  }

  @Test func `An empty, an unused and a short history say so`() throws {
    var reader = HistoryReader()
    let empty = reader.read([])
    #expect(throws: HistoryProblem.empty) { try empty.check(minLength: .zero) }
    let unused = try FleetJournal(periodic([("api", 40, 100_000)], hours: 2), policy: served())
    var later = unused.history()
    later.trace.uses = []
    #expect(throws: HistoryProblem.unused) { try later.check(minLength: .zero) }
    #expect(throws: HistoryProblem.short(.seconds(7200), needed: .seconds(86_400))) {
      try unused.history().check(minLength: .seconds(86_400))
    }
    #expect(
      HistoryProblem.short(.seconds(7200), needed: .seconds(86_400)).description
        == "the history is too short: 2 h of at least 1 d")
  }
}
