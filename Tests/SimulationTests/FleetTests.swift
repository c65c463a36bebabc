import Lifecycle
import Policy
import Simulation
import Testing

@testable import dormouse

private func policy(_ change: (inout LifecyclePolicy) -> Void) -> LifecyclePolicy {
  var policy = LifecyclePolicy(name: "test")
  policy.foreground = ForegroundRules(mode: .activity, max: nil)
  policy.hibernate.maxFootprint = nil
  change(&policy)
  return policy
}

/// Makes a trace of workers of 20 MB that are used at these seconds for 100 ms.
private func trace(
  _ seconds: [Int64], workers: Int = 1, apart: Int64 = 0, launch: Int64 = 500
) -> Trace {
  let all = (0..<workers).map {
    TraceWorker(name: "w\($0)", footprint: .megabytes(20), launch: .milliseconds(launch))
  }
  let uses = seconds.flatMap { second in
    (0..<workers).map {
      Trace.Use(at: second * 1000 + Int64($0) * apart, worker: Int32($0), duration: 100)
    }
  }
  return Trace(name: "test", length: 3_600_000, workers: all, uses: uses)
}

private func run(
  _ trace: Trace, _ policy: LifecyclePolicy, memory: Int64 = 1000,
  _ change: (inout MachineModel) -> Void = { _ in }
) -> FleetReport {
  var machine = MachineModel(memory: .megabytes(memory))
  change(&machine)
  var simulation = FleetSimulation(trace: trace, machine: machine, policy: policy)
  return simulation.run()
}

@Suite("A simulated fleet")
struct FleetTests {
  @Test("A fleet's report counts cold, hot, suspended and hibernated uses, with the cost of each")
  func statesOfUses() {
    let report = run(trace([0, 10, 90, 1000]), policy { $0.hibernate.after = .seconds(60) })
    #expect(report.found == [.cold: 1, .hot: 1, .suspended: 1, .hibernated: 1])
    #expect(report.meanWait[.cold] == 500)
    #expect(report.meanWait[.suspended] == 1.3)
    let resume = report.meanWait[.hibernated] ?? 0
    #expect(resume > 8 && resume < 15)
    #expect(report.launches == 1 && report.hibernations >= 1)
  }

  @Test func `A worker's own timer wakes it, and counts neither as a use nor as a wait`() {
    var trace = trace([0, 1000])
    trace.uses[1].isSelfInitiated = true
    let report = run(trace, policy { $0.hibernate.after = .seconds(60) })
    #expect(report.found == [.cold: 1])
    #expect(report.wake.p99 == report.wake.p50)
  }

  @Test("A worker that ends by itself holds nothing until it is used again, and loses no use")
  func endsByItself() {
    var trace = trace([0, 2000])
    trace.ends = [Trace.End(at: 60_000, worker: 0)]
    let report = run(trace, policy { $0.hibernate.enabled = false })
    #expect(report.found == [.cold: 2] && report.lostUses == 0)
    #expect(report.memoryGigabyteHours < 20.0 / 1024 * 0.6)
  }

  @Test func `A worker with its own policy is managed by it`() {
    let kept = policy { $0.background.suspendAfter = nil }
    var simulation = FleetSimulation(
      trace: trace([0, 1000], workers: 2), machine: MachineModel(memory: .gigabytes(1)),
      policy: policy { $0.hibernate.after = .seconds(60) },
      profiles: [WorkerID("w0"): WorkerProfile(policy: kept)])
    let report = simulation.run()
    #expect(report.found[.hot] == 1 && report.found[.hibernated] == 1)
    #expect(simulation.accounts[WorkerID("w0")]?.wakes == 0)
    #expect((simulation.accounts[WorkerID("w1")]?.savedByteSeconds ?? 0) > 0)
  }

  @Test func `A worker that is used every 20 s sleeps far less often with a back-off`() {
    let pings = trace((0..<180).map { $0 * 20 })
    func impatient(_ longest: Duration?) -> LifecyclePolicy {
      policy {
        $0.foreground.idleAfter = .seconds(4)
        $0.background.suspendAfter = .seconds(4)
        $0.hibernate.after = .seconds(2)
        $0.hibernate.cooldown = .zero
        $0.earlyWake = EarlyWakeRules(
          within: .seconds(30), halvesEvery: .seconds(3600), maxIdle: longest)
      }
    }
    let stubborn = run(pings, impatient(nil))
    let learning = run(pings, impatient(.seconds(600)))
    #expect(stubborn.suspensions > 150 && stubborn.hibernations > 150)
    #expect(learning.suspensions < 10 && learning.hibernations < 10)
  }

  @Test(
    "A leak of a simulated worker is suspected, and the growth of a worker that becomes warm isn't")
  func leaks() {
    var uses = trace((0..<50).map { $0 * 60 }, workers: 2)
    let rules = policy {
      $0.foreground.idleAfter = .seconds(4)
      $0.background.suspendAfter = .seconds(4)
      $0.hibernate.enabled = false
    }
    #expect(run(uses, rules).leaksSuspected == 0)
    uses.workers[1].leak = .megabytes(100)
    let report = run(uses, rules)
    #expect(report.leaksSuspected == 1 && report.leaksSuspectedWrongly == 0)
  }

  @Test func `A fleet that hibernates holds less memory`() {
    let uses = trace([0])
    let awake = run(uses, policy { $0.hibernate.enabled = false })
    let asleep = run(uses, policy { $0.hibernate.after = .seconds(60) })
    #expect(asleep.memoryGigabyteHours < awake.memoryGigabyteHours / 5)
    #expect(asleep.writtenGigabytes > 0 && awake.writtenGigabytes == 0)
  }

  @Test("A trim frees RAM; the next use brings some of it back, and waits for that")
  func trims() {
    let uses = trace((0..<360).map { $0 * 10 })
    let untrimmed = run(uses, policy { _ in })
    let trimming = policy { $0.trim.after = .seconds(120) }
    let report = run(uses, trimming)
    #expect(untrimmed.trims == 0 && report.trims == 1 && report.uses == untrimmed.uses)
    #expect(report.memoryGigabyteHours < untrimmed.memoryGigabyteHours * 0.22)
    let sum = report.memoryGigabyteHours + report.trimmedGigabyteHours
    #expect((sum / untrimmed.memoryGigabyteHours - 1).magnitude < 0.01)
    #expect((report.trimWaitSeconds - 0.00184).magnitude < 0.0001)
    #expect(report.all.mean > untrimmed.all.mean)
    let hungry = run(uses, trimming) { $0.trim.returned = 0.5 }
    #expect(hungry.trims == 2, "after 2 minutes, and 20 minutes later")
    let unable = run(uses, trimming) { $0.trim.left = 1 }
    #expect(unable.trims == 0 && unable.memoryGigabyteHours == untrimmed.memoryGigabyteHours)
  }

  @Test func `A worker that works by its own timers is suspended only if its policy trims none`() {
    let timers = { (machine: inout MachineModel) in machine.staysAwake = [WorkerID("w0")] }
    #expect(run(trace([0]), policy { _ in }, timers).suspensions == 1)
    let report = run(trace([0]), policy { $0.trim.after = .seconds(120) }, timers)
    #expect(report.suspensions == 0 && report.trims == 1)
  }

  @Test func `The policy terminates workers for memory before the kernel has to`() {
    let uses = trace((0..<5).map { $0 * 600 }, workers: 40, apart: 15_000)
    let ruled = run(uses, policy { $0.hibernate.enabled = false }, memory: 450)
    #expect((ruled.terminated["suspended"] ?? 0) > 0)
    let unruled = run(
      uses,
      policy {
        $0.hibernate.enabled = false
        ($0.pressure.warning, $0.pressure.urgent, $0.pressure.critical) = (nil, nil, nil)
      }, memory: 450)
    #expect(unruled.terminated.isEmpty)
    #expect(unruled.outOfMemory > 0)
  }

  @Test func `A simulated fleet serves every use, whatever is terminated meanwhile`() {
    let uses = TraceGenerator(
      pattern: .flapping, workers: 60, length: 3_600_000, seed: 5, usesPerHour: 30
    ).trace()
    let report = run(uses, policy { $0.hibernate.after = .seconds(20) }, memory: 500)
    // The last uses may still be waiting.
    #expect(report.uses <= uses.useCount && report.uses > uses.useCount - 20)
  }

  @Test func `A fleet simulation continues when a worker is bigger than the machine`() {
    let report = run(trace([0, 100]), policy { _ in }, memory: 8)
    #expect(report.outOfMemory > 2)
  }

  @Test func `A fleet simulation gives the same report for the same input`() {
    let uses = TraceGenerator(
      pattern: .bursts, workers: 50, length: 3_600_000, seed: 2
    ).trace()
    #expect(run(uses, policy { _ in }, memory: 300) == run(uses, policy { _ in }, memory: 300))
  }

  @Test func `Wrong settings of the machine are refused, and right ones are accepted`() {
    var machine = MachineModel(memory: .gigabytes(1))
    #expect(machine.set("suspended_wake", "1.5ms") == nil)
    #expect(machine.suspendedWake == .microseconds(1500))
    #expect(machine.set("memory", "64GB") == nil)
    #expect(machine.memory == .gigabytes(64))
    #expect(machine.set("reserve", "5%") == nil)
    #expect(machine.reserve == 0.05)
    #expect(machine.set("reserve", "5") != nil)
    machine.measuredTrims[WorkerID("w")] = .init(left: 0.5, returned: 0.5)
    #expect(machine.set("trim_rest", "4%") == nil)
    #expect(machine.trim.left == 0.04 && machine.measuredTrims.isEmpty)
    #expect(machine.set("memory", "-1GB") != nil)
    #expect(machine.set("speed", "5ms")?.contains("suspended_wake") == true)
  }

  @Test func `A comparison shows every policy in its table and its picture`() {
    let uses = trace([0, 100, 1000], workers: 3)
    let reports = [run(uses, policy { $0.name = "one" }), run(uses, policy { $0.name = "t<w>o" })]
    let comparison = FleetComparison(
      trace: uses, machine: MachineModel(memory: .gigabytes(1)), reports: reports)
    #expect(comparison.rendered().contains("t<w>o"))
    let narrow = comparison.rendered(width: 80).split(separator: "\n")
    #expect(narrow.allSatisfy { $0.count <= 80 }, "\(narrow)")
    #expect(
      narrow.count { $0.hasPrefix("policy") } > 1 && narrow.contains { $0.contains("written GB") })
    #expect(comparison.rendered(asMarkdown: true).contains("| one |"))
    #expect(comparison.picture.hasPrefix("<svg") && comparison.picture.contains("t&lt;w&gt;o"))
    #expect(!comparison.picture.contains("nan"))
  }
}
