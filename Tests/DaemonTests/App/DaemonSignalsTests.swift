import Glibc
import Lifecycle
import PolicyFile
import Testing

@testable import Daemon

@Suite("Signals to the daemon") struct DaemonSignalsTests {
  private let world: AdapterWorld
  /// A child that has ended.
  private let orphan = FakeProcesses { $0.children = [10] }
  private let file = ConfigurationOnDisk()
  private let signals: DaemonSignals

  init() throws {
    world = try AdapterWorld()
    signals = DaemonSignals(
      world.services,
      orphans: OrphanReaper(timers: world.timers, processes: orphan) { [] },
      reloader: world.makeReloader(file.reader(world.services.jobs)), ending: world.ending)
  }

  @Test(
    "SIGTERM and SIGINT begin the end of the daemon, and a second one ends it at once",
    arguments: [SIGTERM, SIGINT])
  func end(signal: Int32) throws {
    try world.add("web")
    signals.handle(signal)
    #expect(world.phase.isEnding && !world.ending.hasEnded)
    signals.handle(signal)
    #expect(world.ending.hasEnded && orphan.children == [10])
  }

  @Test func `SIGCHLD reaps children, and ends nothing`() {
    signals.handle(SIGCHLD)
    #expect(orphan.children == [] && !world.phase.isClosing)
  }

  @Test func `The outcome of a reload that SIGHUP asked for is logged, also a failure`() throws {
    signals.handle(SIGHUP)
    #expect(world.logged == "", "the file may be in a file system that doesn't answer")
    try world.turn {
      world.logged.contains("reload: nothing changed: the configuration is the same")
    }
    file.content.withLock { $0 = nil }
    signals.handle(SIGHUP)
    try world.turn {
      world.logged.contains("reload: nothing changed: the configuration has errors")
    }
    #expect(!world.phase.isClosing && orphan.children == [10])
  }
}
