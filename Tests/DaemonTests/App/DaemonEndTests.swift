import Glibc
import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("The daemon's end") struct DaemonEndTests {
  private let ending: DaemonEndWorld
  private var end: DaemonEnd { ending.end }

  init() throws { ending = try DaemonEndWorld() }

  @Test func `A worker is stopped when all workers that depend on it have ended`() throws {
    try ending.add("db")
    try ending.add("api", .hibernated, needs: ["db"])
    try ending.add("web", needs: ["api", "db"])
    try ending.add("cron", .suspended)
    try ending.add("gone", .terminated)
    end.end()
    end.engineDidBecomeQuiet()
    #expect(end.phase.isEnding && end.phase.isClosing)
    #expect(ending.asked == ["stop cron", "stop web"], "each once")
    ending.didStop("web")
    #expect(ending.asked == ["stop cron", "stop web", "stop api"])
    ending.didStop("api")
    #expect(ending.asked == ["stop cron", "stop web", "stop api", "stop db"])
    ending.didStop("db")
    #expect(!end.hasEnded)
    ending.didStop("cron")
    #expect(end.hasEnded)
  }

  @Test func `The service manager gives the daemon the time that its workers need to end`() throws {
    func time() -> Duration {
      ending.world.workers.timeToEnd { ending.world.requests.isAlive($0) }
    }
    #expect(time() == .seconds(60))
    let workers: [(String, Int, needs: [String])] = [
      ("db", 300, []), ("web", 2, ["db"]), ("cron", 5, []),
    ]
    for (name, grace, needs) in workers {
      let worker = try ending.add(name, needs: needs)
      worker.configuration.policy.terminate.grace = .seconds(grace)
      worker.configuration.policy.watchdog.maxExtension = .seconds(10)
    }
    // The web server and the timer end together, and the database after them.
    #expect(time() == .seconds(60 + 15 + 310))
    try ending.addExternal("foreign", .suspended)
    ending.didStop("web")
    #expect(time() == .seconds(60 + 310))
    ending.world.workers[WorkerID("cron")]?.configuration.policy.terminate.grace = .seconds(90_000)
    #expect(time() == .seconds(3600))
    #expect(
      ServiceManager.request(moreTime: .seconds(60)) == "EXTEND_TIMEOUT_USEC=60000000")
  }

  @Test func `A worker that can't be killed doesn't delay the stop of its dependencies`() throws {
    try ending.add("db")
    try ending.add("web", needs: ["db"])
    end.end()
    ending.outlivesKill("web")
    #expect(ending.asked == ["stop web", "stop db"])
    ending.didStop("db")
    #expect(!end.hasEnded, "web still runs")
    ending.didStop("web")
    #expect(end.hasEnded)
  }

  @Test func `The daemon's last line names processes that it couldn't adopt`() throws {
    try ending.add("adopted", .terminated).process = .forTest()
    let others = [
      try ending.world.record("adopted"),
      try ending.world.record("external") { $0.external = .mayNot },
      try ending.world.record("earlier") { $0.bootID = "earlier boot" },
    ]
    for record in try [ending.world.record("keys"), ending.world.record("agent")] + others {
      ending.world.services.records.save(record) { _ in }
    }
    end.end()
    #expect(end.hasEnded && ending.lines.count == 1)
    #expect(ending.hasLogged("(agent, keys): run `kill -9 \(getpid()) \(getpid())`"))
  }

  @Test func `Without workers the daemon ends at once, and says so once`() {
    end.end()
    #expect(end.hasEnded)
    end.engineDidBecomeQuiet()
    #expect(ending.lines.count == 1)
    #expect(ending.hasLogged("all workers have ended; the daemon ends"))
  }

  @Test(arguments: [false, true])
  func `Workers' sockets close at the daemon's end, and stay if it leaves`(leaves: Bool) throws {
    let world = ending.world
    let worker = try ending.add("web", .terminated)
    let path = world.scratch.uniquePath("sock")
    worker.configuration.listen = [ListenSocket(name: "web", address: .unix(path))]
    world.listening.relisten(worker)
    try world.turn { world.watches.active == 1 }
    if leaves { end.leave() } else { end.end() }
    #expect(end.hasEnded && world.watches.active == (leaves ? 1 : 0))
  }

  @Test func `At its end the daemon closes sockets, gives answers, then announces it`() throws {
    let control = try ControlWorld()
    let (world, end) = (control.world, control.world.ending)
    world.driver.connect([world.notes], whenQuiet: { [weak end] in end?.engineDidBecomeQuiet() })
    try world.scratch.write("run/file", "")
    try world.control.open(control.service)
    let client = try ControlTestClient(world.socket)
    let job = try world.add("job")
    let web = try world.add("web", .terminated)
    web.configuration.listen = [
      ListenSocket(name: "web", address: .unix(world.scratch.uniquePath("sock")))
    ]
    world.listening.relisten(web)
    try world.turn { world.watches.active == 1 }
    world.saved.isSaved = false
    var atAnswer: [(listeners: Int, announced: Int)] = []
    world.driver.request(.stop, job.id) { _ in
      do { try client.read() } catch { Issue.record(error) }
      atAnswer.append((world.watches.active, client.answers.count))
    }
    try client.ask(1, .shutdown)
    try world.turn { end.phase.isEnding }
    world.driver.send(.exited(job.id, .exited(0)))
    #expect(end.hasEnded && atAnswer.count == 1)
    #expect(atAnswer.allSatisfy { $0 == (0, 0) })
    try world.turn {
      try client.read()
      return client.answers.count == 1
    }
    #expect(client.answers.first?.text == "all workers have ended; the daemon ends")
    world.control.close()
  }

  @Test func `A worker that is being adopted is stopped when its adoption has ended`() throws {
    let worker = try ending.add("web", .terminated)
    ending.world.returning.begin(worker.id)
    end.end()
    #expect(ending.asked == [] && !end.hasEnded)
    ending.send({ .adopted($0, worker.profile, .background) }, "web")
    ending.world.returning.finish(worker.id)
    #expect(ending.asked == ["stop web"] && !end.hasEnded)
    ending.didStop("web")
    #expect(end.hasEnded)
  }

  @Test func `An external worker is released, not stopped, and the daemon waits for that`() throws {
    try ending.addExternal("theirs", .hibernated)
    try ending.add("ours")
    end.end()
    #expect(ending.asked == ["wake theirs", "stop ours"])
    ending.didStop("ours")
    #expect(!end.hasEnded)
    ending.didWake("theirs")
    #expect(end.hasEnded && ending.world.workers[WorkerID("theirs")] == nil)
    #expect(ending.hasLogged("theirs: released"))
  }

  @Test func `A failed release is tried again after a pause, and by the next end`() throws {
    try ending.addExternal("theirs", .hibernated)
    end.end()
    end.end()
    #expect(ending.asked == ["wake theirs"], "the first one is still under way")
    for (count, pause) in [1, 2, 4].enumerated() {
      ending.cantBeWoken("theirs")
      #expect(ending.hasLogged("; next attempt in \(pause) s"))
      #expect(ending.world.timers.pending == [.seconds(pause)])
      #expect(ending.asked.count == count + 1 && !end.hasEnded)
      ending.world.timers.advance(by: .seconds(pause))
      #expect(ending.asked.count == count + 2)
    }
    ending.cantBeWoken("theirs")
    end.end()
    #expect(ending.asked.count == 5)
    ending.didWake("theirs")
    #expect(end.hasEnded)
  }

  @Test func `A worker whose stop failed is asked again after pauses that double`() throws {
    try ending.add("web", .hibernated)
    end.end()
    for (count, pause) in [1, 2, 4, 8, 16, 30, 30].enumerated() {
      ending.cantBeWoken("web")
      #expect(ending.world.timers.pending == [.seconds(pause)])
      end.engineDidBecomeQuiet()
      #expect(ending.asked.count == count + 1, "not before the pause is over")
      ending.world.timers.advance(by: .seconds(pause))
      #expect(ending.asked.count == count + 2)
    }
    #expect(ending.lines.first?.hasSuffix("; it is asked to stop again in 1 s") == true)
    ending.cantBeWoken("web")
    ending.didStop("web")
    #expect(end.hasEnded)
    ending.world.timers.advance(by: .seconds(60))
    #expect(ending.asked == Array(repeating: "stop web", count: 8))
  }

  @Test func `A stop that another request has replaced is repeated`() throws {
    try ending.add("db")
    try ending.add("web", .hibernated, needs: ["db"])
    end.end()
    ending.world.driver.request(.wake, WorkerID("web")) { _ in }
    #expect(ending.asked == ["stop web", "wake web"])
    #expect(ending.hasLogged("it is asked to stop again in 1 s"))
    ending.world.timers.advance(by: .seconds(1))
    #expect(ending.asked == ["stop web", "wake web", "stop web"])
  }

  @Test func `A second signal ends the daemon at once and leaves its workers running`() throws {
    try ending.add("web")
    end.didReceiveSignal()
    #expect(ending.asked == ["stop web"] && !end.hasEnded)
    end.didReceiveSignal()
    #expect(end.hasEnded && ending.asked == ["stop web"])
    let lines = ending.lines.count
    #expect(ending.lines.last?.hasSuffix("workers that still run are left running") == true)
    // Nothing more happens even if the worker ends afterwards.
    ending.didStop("web")
    #expect(ending.lines.count == lines)
  }

  @Test func `The daemon ends 10 s after the last worker that SIGKILL can end`() throws {
    try ending.add("hung")
    try ending.add("well")
    end.end()
    ending.pass(seconds: 5)
    ending.didStop("well")
    ending.outlivesKill("hung")
    ending.pass(seconds: 9)
    #expect(!end.hasEnded)
    ending.pass()
    #expect(end.hasEnded && ending.saved("hung") == "terminating")
    #expect(ending.hasLogged("ends without hung: SIGKILL"))
  }

  @Test func `A worker that can't be killed isn't given up while another one must end`() throws {
    try ending.add("hung")
    try ending.add("slow", .hibernated)
    end.end()
    ending.outlivesKill("hung")
    for _ in 0..<60 {
      ending.cantBeWoken("slow")
      ending.pass()
    }
    #expect(!end.hasEnded)
    ending.didStop("slow")
    ending.pass(seconds: 10)
    #expect(end.hasEnded)
  }
}
