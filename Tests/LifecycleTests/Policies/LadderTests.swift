import Lifecycle
import Policy
import Testing

@Suite("The ladder under pressure")
struct LadderTests {
  private func world(
    _ change: (inout LifecyclePolicy) -> Void = { _ in }
  ) -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = nil
    policy.hibernate.after = nil
    change(&policy)
    return World(policy)
  }

  @Test("The ladder hibernates one worker after the other, the largest first, until that is enough")
  func hibernates() {
    var world = world()
    for (worker, size) in [(mail, Int64(5)), (maps, 8), (web, 6)] {
      world.add(worker, size: .megabytes(size), in: .suspended)
    }
    #expect(world.read(available: 140).deeds == ["hibernate maps"])
    world.read(available: 140)
    // 148 MB of the 150 MB that are needed are available then.
    #expect(world.send(.hibernated(maps, world.hibernation(maps))).deeds == ["hibernate web"])
    #expect(world.send(.hibernated(web, world.hibernation(web))).deeds.isEmpty)
    #expect(world.pass(.milliseconds(499)).deeds.isEmpty, "it settles first")
    #expect(world.pass(.milliseconds(1)).deeds.isEmpty, "and then needs a new reading")
    #expect(world.read(available: 140).deeds == ["hibernate mail"])
  }

  @Test(
    "Where tasks stall, a part of the memory is freed between two readings, and a failure ends that"
  )
  func hibernatesForStalls() {
    var world = world()
    let workers = (1...6).map { WorkerID("w\($0)") }
    for worker in workers { world.add(worker, size: .megabytes(8), in: .suspended) }
    #expect(world.read(available: 900, some: 90).deeds == ["hibernate w1"])
    // 2 % of the memory are 20 MB.
    for next in [2, 3] {
      let done = workers[next - 2]
      #expect(
        world.send(.hibernated(done, world.hibernation(done))).deeds == ["hibernate w\(next)"])
    }
    #expect(world.send(.hibernated(workers[2], world.hibernation(workers[2]))).deeds.isEmpty)
    #expect(world.read(available: 900, some: 90).deeds == ["hibernate w4"])
    let failed = world.send(.hibernateFailed(workers[3], "full", permanent: false))
    #expect(failed.deeds.isEmpty, "it waits for a reading, because nothing was freed")
  }

  @Test func `No worker is terminated before a reading shows what hibernation has freed`() {
    var world = world {
      $0.ladder = Ladder(
        warning: [.hibernate, .terminate(.background)], urgent: [.hibernate], critical: [.hibernate]
      )
    }
    world.add(mail, size: .megabytes(8), in: .suspended)
    world.add(web, size: .megabytes(40), in: .background)
    #expect(world.read(available: 120).deeds == ["hibernate mail"])
    #expect(world.send(.hibernated(mail, world.hibernation(mail))).victims.isEmpty)
    world.pass(.milliseconds(500))
    #expect(world.read(available: 120).victims == ["web"])
  }

  @Test func `The ladder acts at a level that the operator set, only while the level lasts`() {
    var world = world()
    for (worker, size) in [(mail, Int64(12)), (maps, 8)] {
      world.add(worker, size: .megabytes(size), in: .suspended)
    }
    world.read(available: 900)
    #expect(world.send(.pressureSet(.warning, for: .seconds(1))).deeds == ["hibernate mail"])
    world.pass(.seconds(1))
    #expect(world.send(.hibernated(mail, world.hibernation(mail))).deeds.isEmpty)
    #expect(world.pass(.seconds(20)).deeds.isEmpty, "the set level ended before the second worker")
  }

  @Test func `The ladder continues without a new reading if none comes`() {
    var world = world()
    for worker in [mail, web] { world.add(worker, size: .megabytes(8), in: .suspended) }
    world.read(available: 145)
    world.send(.hibernated(mail, world.hibernation(mail)))
    #expect(world.pass(.milliseconds(1500)).deeds == ["hibernate web"])
  }

  @Test(
    "The ladder terminates one worker, waits for its end and memory, and ends no more than needed")
  func settles() {
    var world = world { $0.hibernate.enabled = false }
    for (worker, size) in [(mail, Int64(40)), (maps, 30), (web, 20)] {
      world.add(worker, size: .megabytes(size), in: .suspended)
    }
    #expect(world.read(available: 40).victims == ["mail"])
    #expect(world.read(available: 40).victims.isEmpty)
    world.pass(.milliseconds(300))
    world.send(.exited(mail, .exited(0)))
    #expect(world.read(available: 45).victims.isEmpty, "not settled yet")
    world.pass(.milliseconds(500))
    #expect(world.read(available: 45).victims == ["maps"])
    world.send(.exited(maps, .exited(0)))
    world.pass(.milliseconds(500))
    let after = world.read(available: 900) + world.pass(.seconds(60))
    #expect(after.victims.isEmpty, "there is memory again, though the level falls later")
    #expect(world.state(web) == .suspended)
    #expect(after.brief == ["report", "pressure critical → normal"])
  }

  @Test func `The ladder continues with the next worker when a victim doesn't die`() {
    var world = world { $0.hibernate.enabled = false }
    for (worker, size) in [(mail, Int64(40)), (maps, 30)] {
      world.add(worker, size: .megabytes(size), in: .suspended)
    }
    #expect(world.read(available: 40).deeds == ["terminate mail"])
    #expect(world.pass(.seconds(2)).deeds == ["kill mail"])
    #expect(world.pass(.seconds(5)).victims == ["maps"])
  }

  @Test func `The ladder warns every worker once in an episode, and waits for all of them`() {
    var world = world { $0.foreground.max = nil }
    for worker in [mail, web] {
      world.add(worker, size: .megabytes(20), canShed: true)
      world.bring(worker, to: worker == mail ? .background : .foreground)
    }
    let warned = world.read(available: 40)
    #expect(warned.deeds == ["shed mail memoryWarning", "shed web memoryWarning"])
    world.send(.shedAnswered(web))
    world.send(.shedFinished(web, before: .megabytes(20), after: .megabytes(15)))
    #expect(world.read(available: 45).deeds.isEmpty, "mail hasn't answered")
    #expect(world.pass(.seconds(5)).deeds == ["finishShed mail"])
    world.send(.shedFinished(mail, before: .megabytes(20), after: .megabytes(20)))
    #expect(world.engine.snapshot(of: mail)?.lastShed?.answered == false)
    world.pass(.milliseconds(500))
    #expect(world.read(available: 45).deeds == ["terminate mail"], "no second warning")
    world.send(.exited(mail, .exited(0)))
    world.pass(.milliseconds(500))
    world.read(available: 900)
    world.pass(.seconds(5))
    #expect(world.engine.pressure == .normal)
    #expect(world.read(available: 40).deeds == ["shed web memoryWarning"], "a new episode")
  }

  @Test func `The ladder spares workers that would free nothing`() {
    var world = world()
    world.add(web, size: .kilobytes(408), in: .foreground)
    world.add(mail, size: .kilobytes(408), in: .suspended)
    #expect(world.read(available: 0).victims.isEmpty)
  }

  @Test func `The ladder spares the foreground while another worker is being suspended`() {
    var world = world {
      $0.foreground.max = nil
      $0.hibernate.enabled = false
    }
    world.add(web, size: .megabytes(20), in: .foreground)
    world.add(mail, size: .megabytes(20), in: .suspending)
    #expect(world.read(available: 40).victims.isEmpty)
    #expect(world.send(.suspended(mail)).victims == ["mail"])
  }

  @Test("The ladder spares the foreground while a warning might help, even if listed before it")
  func listedFirst() {
    var world = world {
      $0.ladder.critical = [.terminate(.foreground), .warn, .terminate(.background)]
    }
    world.add(web, size: .megabytes(20), canShed: true, in: .foreground)
    let all = world.obey(world.read(available: 40))
    #expect(all.deeds == ["shed web memoryWarning", "finishShed web"])
    world.pass(.milliseconds(500))
    #expect(world.read(available: 40).victims == ["web"])
  }

  @Test("The report after recovery names the victims, the reasons and the memory freed")
  func report() throws {
    var world = world { $0.hibernate.enabled = false }
    for (worker, size) in [(mail, Int64(40)), (maps, 30)] {
      world.add(worker, size: .megabytes(size), in: .suspended)
    }
    world.add(web, size: .megabytes(90), in: .foreground)
    world.obey(world.read(available: 40))
    world.pass(.milliseconds(500))
    // The report comes as soon as memory is available, without waiting for the level to fall.
    let report = try #require(world.read(available: 200).jetsamReports.first)
    #expect(report.level == .critical && report.largest == web)
    #expect(report.availableBefore == .megabytes(40))
    #expect(report.availableAfter == .megabytes(200))
    #expect(report.entries.map(\.worker) == [mail, maps, web])
    let victim = try #require(report.entries.first)
    #expect(victim.state == .suspended && victim.gaveBack == .megabytes(40))
    #expect(
      victim.victimBecause
        == "lowest band (0), largest footprint (40 MB) among suspended workers")
    #expect(report.entries.dropFirst().allSatisfy { $0.victimBecause == nil })
  }

  @Test func `On a device, the ladder counts at once what a victim freed`() {
    var world = world {
      $0.memory = .device(.megabytes(100))
      $0.hibernate.enabled = false
    }
    for worker in [mail, maps] { world.add(worker, size: .megabytes(30), in: .suspended) }
    world.add(web, size: .megabytes(36))
    let all = world.obey(world.ask(.start, web)) + world.pass(.seconds(10))
    #expect(all.victims == ["mail"])
    #expect(world.engine.pressure == .normal)
  }
}
