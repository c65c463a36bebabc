import Control
import Glibc
import Lifecycle
import Linux
import Policy
import Supervision
import Testing

@testable import Daemon

@Suite("The daemon's end") struct DaemonEndTests {
  private let ending: DaemonEndWorld
  private var end: DaemonEnd { ending.end }

  init() throws { ending = try DaemonEndWorld() }

  @Test func `A worker is stopped before those that it depends on`() throws {
    try ending.add("db")
    try ending.add("api", .hibernated, needs: ["db"])
    try ending.add("web", needs: ["api"])
    end.end()
    #expect(end.phase.isEnding && end.phase.isClosing)
    #expect(ending.asked == ["stop web"])
    ending.didStop("web")
    #expect(ending.asked == ["stop web", "stop api"])
    ending.didStop("api")
    #expect(ending.asked == ["stop web", "stop api", "stop db"] && !end.hasEnded)
    ending.didStop("db")
    #expect(end.hasEnded)
  }

  @Test("Workers that don't depend on each other are stopped at the same time, and each once")
  func atOnce() throws {
    try ending.add("one")
    try ending.add("two", .suspended)
    try ending.add("gone", .terminated)
    end.end()
    end.engineDidBecomeQuiet()
    #expect(ending.asked == ["stop one", "stop two"])
  }

  @Test("A worker that can't be killed doesn't delay the stop of those that it depends on")
  func unstoppable() throws {
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

  @Test("The daemon's last log line names processes that it couldn't adopt, and what ends them")
  func unadopted() throws {
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

  @Test(
    "Sockets of workers are closed when the daemon ends, and stay open when it leaves",
    arguments: [false, true])
  func sockets(leaves: Bool) throws {
    let world = ending.world
    let worker = try ending.add("web", .terminated)
    let path = world.scratch.uniquePath("sock")
    worker.configuration.listen = [ListenSocket(name: "web", address: .unix(path))]
    world.listening.relisten(worker)
    try world.turn { world.watches.active == 1 }
    if leaves { end.leave() } else { end.end() }
    #expect(end.hasEnded && world.watches.active == (leaves ? 1 : 0))
  }

  @Test("At its end the daemon closes workers' sockets, then gives open answers, then announces it")
  func finish() throws {
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

  @Test("An external worker is released and not stopped, and the daemon waits for that")
  func external() throws {
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

  @Test(
    "A release that failed is tried again after a growing pause, and by the next request to end")
  func externalAgain() throws {
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

  @Test("A stop that failed is requested again, and the daemon ends when the worker has ended")
  func stopAgain() throws {
    try ending.add("web", .hibernated)
    end.end()
    ending.cantBeWoken("web")
    #expect(ending.hasLogged("; it is asked to stop again in 1 s"))
    ending.world.timers.advance(by: .seconds(1))
    #expect(ending.asked == ["stop web", "stop web"])
    ending.didStop("web")
    #expect(end.hasEnded)
  }

  @Test("A second signal ends the daemon at once and leaves the remaining workers running")
  func secondSignal() throws {
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

  @Test("The daemon ends without workers that SIGKILL doesn't end, 10 s after the other ones")
  func dead() throws {
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

  @Test("A worker that can't be killed isn't given up while another one is still to end")
  func othersFirst() throws {
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
