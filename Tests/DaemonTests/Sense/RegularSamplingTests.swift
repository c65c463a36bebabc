import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("Regular sampling") struct RegularSamplingTests {
  private final class Host: SamplingHost {
    var calls: [String] = []
    func beginSample() { calls.append("machine") }
    func sample(_ runtime: WorkerUnit) { calls.append(runtime.id.name) }
    func saveMemoryWhenDue() { calls.append("memory") }
    func sendDiskReading() { calls.append("disk") }
    func dropOutdatedBases() { calls.append("bases") }

    func count(_ call: String) -> Int { calls.count { $0 == call } }
  }

  private let world = SenseWorld()
  private let host = Host()

  private func begin(_ pace: RegularSampling.Pace = RegularSampling.Pace()) -> RegularSampling {
    let sampling = RegularSampling(
      clock: world.timers, driver: world.driver, workers: world.workers, pace: pace, host: host)
    sampling.sampleRegularly()
    return sampling
  }

  @Test("A sample looks at the machine, at the running workers, and then at what else is due")
  func order() throws {
    try world.add("web")
    try world.add("asleep", .suspended)
    try world.add("deep", .hibernated)
    try world.add("ended", .terminated)
    let sampling = begin()
    #expect(host.calls == ["machine", "web", "memory", "disk"])
    world.timers.advance(by: .seconds(1))
    #expect(host.calls.dropFirst(4) == ["machine", "web", "memory"])
    withExtendedLifetime(sampling) {}
  }

  @Test(
    "While all workers sleep none is examined, and the daemon wakes only for samples"
  )
  func idle() throws {
    for number in 0..<50 { try world.add("w\(number)", .hibernated) }
    let sampling = begin()
    host.calls = []
    for _ in 0..<59 {
      #expect(world.timers.pending == [.seconds(1)])
      world.timers.advance(by: .seconds(1))
    }
    #expect(host.calls.count == 2 * 59 && Set(host.calls) == ["machine", "memory"])
    withExtendedLifetime(sampling) {}
  }

  @Test("The disk is looked at once a minute, and outdated bases are searched for once an hour")
  func rare() throws {
    let sampling = begin()
    world.timers.advance(by: .seconds(59))
    #expect(host.count("disk") == 1)
    world.timers.advance(by: .seconds(1))
    #expect(host.count("disk") == 2)
    world.timers.advance(by: .seconds(3540))
    #expect(host.count("bases") == 0)
    world.timers.advance(by: .seconds(1))
    #expect(host.count("bases") == 1)
    world.timers.advance(by: .seconds(3600))
    #expect(host.count("bases") == 1)
    world.timers.advance(by: .seconds(1))
    #expect(host.count("bases") == 2)
    withExtendedLifetime(sampling) {}
  }

  @Test(
    "A wrapper samples at another interval while its program sleeps, and at once when that is woken"
  )
  func paces() throws {
    let runtime = try world.add("web", .suspended)
    let sampling = begin(
      RegularSampling.Pace(running: .milliseconds(100), resting: .seconds(5)))
    #expect(world.timers.pending == [.seconds(5)])
    runtime.sample.cpu = 5
    runtime.sample.at = world.timers.now
    host.calls = []
    sampling.sampleAnew(runtime)
    sampling.sampleAnew(runtime)
    #expect(runtime.sample.at == .zero && runtime.sample.cpu == 0)
    // One is planned: the old one is cancelled.
    #expect(world.timers.pending == [.zero])
    world.driver.send(.resumed(runtime.id, .zero))
    world.timers.advance(by: .zero)
    #expect(host.count("machine") == 1 && world.timers.pending.count == 1)
  }

  @Test("Two calls to begin sampling start one timer")
  func twice() {
    let sampling = begin()
    sampling.sampleRegularly()
    #expect(world.timers.pending == [.seconds(1)])
  }
}
