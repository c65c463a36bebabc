import Lifecycle
import Policy
import Testing

/// A world with `web` in the foreground, of 52 MB.
func trimWorld(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> World {
  var policy = LifecyclePolicy()
  policy.foreground.max = nil
  policy.trim.after = .seconds(300)
  change(&policy)
  var world = World(policy)
  world.add(web, size: .megabytes(52), in: .foreground)
  world.send(.footprint(web, .megabytes(52)))
  return world
}

extension World {
  /// Reports the outcome of a trim of `web`, of 52 MB.
  @discardableResult
  mutating func trimmed(to resident: Int64, inImage: Bool = false) -> [Directive] {
    send(
      .trimmed(
        web,
        TrimResult(
          residentBefore: .megabytes(52), residentAfter: .megabytes(resident),
          swapped: .megabytes(52 - resident),
          inImage: inImage ? .megabytes(52 - resident) : nil, duration: .milliseconds(30))))
  }

  /// Measures `web`, of 52 MB.
  mutating func measure(resident: Int64) {
    send(.swapped(web, .megabytes(52 - resident)))
    send(.footprint(web, .megabytes(52)))
  }

  var trim: TrimState? { engine.snapshot(of: web, at: now)?.trim }
}

@Suite("Trims by the policy")
struct TrimPolicyTests {
  @Test("A worker is trimmed after it has run for trim.after, and again after trim.every")
  func due() {
    var world = trimWorld()
    #expect(world.trim?.next == .seconds(300))
    #expect(world.pass(.seconds(299)).deeds.isEmpty)
    #expect(world.pass(.seconds(1)).deeds == ["trim web"])
    world.trimmed(to: 4)
    #expect(world.trim?.next == .seconds(600))
    #expect(world.pass(.seconds(599)).deeds.isEmpty)
    world.measure(resident: 20)
    #expect(world.pass(.seconds(1)).deeds == ["trim web"])
  }

  @Test("A worker counts as trimmed by its policy until three attempts in a row have failed")
  func failedAgainAndAgain() {
    var world = trimWorld()
    for pause in [300, 60, 120] {
      #expect(world.trim?.isByPolicy == true)
      #expect(world.pass(.seconds(pause)).deeds == ["trim web"])
      world.send(.trimFailed(web, "the machine has no swap", permanent: false))
    }
    #expect(world.trim?.isByPolicy == false)
    #expect(trimWorld { $0.trim.mechanism = .off }.trim?.isByPolicy == false)
    // After a success, failures mean that the machine is busy.
    var busy = trimWorld()
    busy.pass(.seconds(300))
    busy.trimmed(to: 4)
    for pause in [600, 60, 120] {
      busy.measure(resident: 20)
      busy.pass(.seconds(pause))
      busy.send(.trimFailed(web, "the machine is busy", permanent: false))
    }
    #expect(busy.trim?.isByPolicy == true)
    #expect(trimWorld { $0.trim.after = nil }.trim?.isByPolicy != true)
  }

  @Test("A policy that encrypts images moves memory to swap only if it says so")
  func encrypted() {
    var world = trimWorld { $0.hibernate.encrypt = true }
    #expect(world.pass(.seconds(600)).deeds.isEmpty)
    #expect(world.trim?.sentence.hasPrefix("hibernate.encrypt is true") == true)
    #expect(world.ask(.trim, web).deeds == ["trim web"])
    var swap = trimWorld {
      $0.hibernate.encrypt = true
      $0.trim.mechanism = .swap
    }
    #expect(swap.pass(.seconds(300)).deeds == ["trim web"])
  }

  @Test("The time begins again with a wake, and the trim before the hibernation is forgotten")
  func wake() {
    var world = trimWorld {
      $0.background.suspendAfter = nil
      $0.trim.every = .seconds(1)
    }
    world.live(.seconds(300))
    #expect(world.engine.swapped(of: web) > .zero)
    world.obey(world.ask(.hibernate, web))
    #expect(world.state(web) == .hibernated)
    #expect(world.engine.swapped(of: web) == .zero)
    world.obey(world.ask(.wake, web))
    world.send(.footprint(web, .megabytes(52)))
    #expect(world.trim?.last == nil)
    #expect(world.pass(.seconds(299)).deeds.isEmpty)
    #expect(world.pass(.seconds(1)).deeds == ["trim web"])
  }

  @Test("A worker that was adopted is trimmed, and its earlier trims aren't known")
  func adopted() {
    var world = trimWorld()
    world.adopt(mail, in: .foreground)
    world.send(.footprint(mail, .megabytes(30)))
    #expect(world.engine.snapshot(of: mail)?.trim?.count == 0)
    #expect(world.pass(.seconds(300)).deeds.contains("trim mail"))
  }

  @Test("What the worker needs within half a minute of a trim isn't expected to leave RAM again")
  func needed() {
    var world = trimWorld()
    world.pass(.seconds(300))
    world.trimmed(to: 4)
    world.pass(.seconds(20))
    world.measure(resident: 14)
    world.pass(.seconds(580))
    world.measure(resident: 20)
    #expect(world.trim?.next == nil)
    let gain = world.trim?.obstacles.first { $0.code == "small_gain" }
    #expect(gain?.measured == .megabytes(6) && gain?.limit == .megabytes(8))
    world.measure(resident: 30)
    #expect(world.engine.snapshot(of: web)?.trim?.underWay == .trim)
  }

  @Test("A worker of which more than a third comes back is trimmed half as often, up to never")
  func refaults() {
    var world = trimWorld()
    var interval = Duration.seconds(600)
    #expect(world.pass(.seconds(300)).deeds == ["trim web"])
    for trims in 1...6 {
      world.trimmed(to: 4)
      world.pass(.seconds(120))
      world.measure(resident: 24)
      interval = interval + interval
      #expect(world.trim?.interval == interval && world.trim?.cameBack == .megabytes(20))
      if trims == 1 {
        #expect(
          world.trim?.sentence
            == "trimmed 2 m ago: 52 MB → 4 MB in RAM; more than a third (20 MB of 48 MB) came back "
            + "within 2 m, so it is trimmed every 20 m at most; the next trim is in 18 m at the "
            + "earliest")
      }
      guard trims < 6 else { break }
      #expect(world.pass(interval - .seconds(121)).deeds.isEmpty)
      #expect(world.pass(.seconds(1)).deeds == ["trim web"])
    }
    #expect(world.trim?.obstacles.map(\.code).contains("given_up") == true)
    #expect(world.pass(.seconds(1_000_000)).deeds.isEmpty)
    #expect(world.ask(.trim, web).deeds == ["trim web"], "a request is still done")
  }

  @Test("A trim whose memory stays out of RAM resets the interval")
  func reset() {
    var world = trimWorld()
    world.pass(.seconds(300))
    world.trimmed(to: 4)
    world.measure(resident: 40)
    #expect(world.trim?.interval == .seconds(1200))
    #expect(world.pass(.seconds(1200)).deeds == ["trim web"])
    world.trimmed(to: 4)
    world.pass(.seconds(60))
    world.ask(.trim, web)
    world.trimmed(to: 3)
    #expect(world.trim?.interval == .seconds(1200), "a minute proves nothing")
    world.pass(.seconds(1200))
    world.measure(resident: 15)
    #expect(world.trim?.underWay == .trim)
    world.trimmed(to: 4)
    #expect(world.trim?.interval == .seconds(600))
  }

  @Test("A permanent refusal ends trims and requests until the next launch")
  func refusal() {
    var world = trimWorld()
    world.pass(.seconds(300))
    world.send(.trimFailed(web, "it is locked in RAM", permanent: true))
    #expect(world.pass(.seconds(10_000)).deeds.isEmpty)
    #expect(world.trim?.sentence.contains("it is locked in RAM") == true)
    #expect(world.ask(.trim, web).deeds == ["refused"])
    world.obey(world.ask(.stop, web))
    #expect(world.trim == nil)
    world.bring(web, to: .foreground)
    world.send(.footprint(web, .megabytes(52)))
    #expect(world.ask(.trim, web).deeds == ["trim web"])
  }

  @Test("After a failure the policy tries again, each time after a longer pause")
  func failure() {
    var world = trimWorld()
    world.pass(.seconds(300))
    world.send(.trimFailed(web, "there is no swap", permanent: false))
    #expect(
      world.trim?.sentence == "the last attempt failed: there is no swap; next attempt in 1 m")
    #expect(world.pass(.seconds(59)).deeds.isEmpty)
    #expect(world.pass(.seconds(1)).deeds == ["trim web"])
    world.send(.trimFailed(web, "there is no swap", permanent: false))
    #expect(world.pass(.seconds(119)).deeds.isEmpty)
    #expect(world.pass(.seconds(1)).deeds == ["trim web"])
    world.trimmed(to: 4)
    #expect(world.trim?.failure == nil)
  }

  @Test("A trim without an outcome isn't waited for after a minute, which a sleep doesn't count in")
  func lostOutcome() {
    var world = trimWorld()
    world.pass(.seconds(300))
    world.now = world.now + .seconds(3600)
    world.send(.machineSlept(.seconds(3600)))
    world.pass(.seconds(59))
    #expect(world.trim?.underWay == .trim)
    world.pass(.seconds(1))
    #expect(world.trim?.underWay == nil)
    #expect(world.trim?.failure == "there was no outcome within 1 m")
    world.trimmed(to: 4)
    #expect(world.engine.swapped(of: web) == .zero, "a late outcome doesn't count")
  }

  @Test("Shadow mode reports a trim once, and does those that are requested")
  func shadow() {
    var world = trimWorld { $0.mode = .shadow }
    let directives = world.pass(.seconds(3000))
    #expect(directives.brief.filter { $0 == "wouldHave web" }.count == 1)
    #expect(directives.deeds.isEmpty)
    #expect(world.trim?.obstacles.map(\.code).contains("shadow_mode") == true)
    #expect(world.ask(.trim, web).deeds == ["trim web"])
  }

  @Test("Without trim.after a worker has no trims to explain, until something is in swap")
  func nothing() {
    var world = trimWorld { $0.trim.after = nil }
    #expect(world.trim == nil)
    world.measure(resident: 40)
    let start = "12 MB of its memory are out of RAM; trim.after is never"
    #expect(world.trim?.sentence.hasPrefix(start) == true)
    #expect(world.engine.explanation(of: web)?.trim == world.trim)
  }

  @Test("Memory in swap isn't in a simulated device's RAM")
  func device() {
    var world = trimWorld { $0.memory = .device(.megabytes(100)) }
    #expect(world.engine.available == .megabytes(48))
    world.pass(.seconds(300))
    world.trimmed(to: 4)
    #expect(world.engine.available == .megabytes(96))
    world.obey(world.ask(.fill, web))
    #expect(world.engine.available == .megabytes(48))
  }
}
