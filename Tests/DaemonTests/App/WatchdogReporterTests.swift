import Lifecycle
import Testing

@testable import Daemon

@Suite("Reports of watchdogs") struct WatchdogReporterTests {
  private let world = SenseWorld()
  private let channels: ConversationWorld
  private let reporter: WorkerConversations

  init() throws {
    channels = try ConversationWorld()
    let adapters = channels.adapters
    reporter = WorkerConversations(
      services: adapters.services, timers: adapters.timers, watches: adapters.watches,
      driver: world.driver, workers: world.workers, reloads: adapters.reloads,
      snapshots: adapters.snapshots, recordWriter: adapters.recordWriter)
  }

  @Test func `A launch reports the watchdog interval if a sign of life can be sent`() throws {
    let worker = try world.add { $0.watchdog = .seconds(5) }
    worker.launched = worker.configuration
    reporter.startWatchdog(of: worker)
    #expect(world.drainEvents().isEmpty, "it has no socket for it")
    worker.conversation = try channels.begin()
    reporter.startWatchdog(of: worker)
    #expect(world.drainEvents() == [.watchdogInterval(worker.id, .seconds(5))])
    // A reload applies at the next launch.
    worker.configuration.watchdog = .seconds(7)
    reporter.startWatchdog(of: worker)
    #expect(world.drainEvents() == [.watchdogInterval(worker.id, .seconds(5))])
  }

  @Test func `A worker's own watchdog interval has priority and is kept`() throws {
    let worker = try world.add { $0.watchdog = .seconds(5) }
    worker.launched = worker.configuration
    worker.conversation = try channels.begin()
    reporter.setWatchdog(of: worker, to: .seconds(2))
    let record = channels.adapters.services.records.record(of: "web")
    #expect(record?.state == "background" && record?.watchdog == 2_000_000_000)
    reporter.startWatchdog(of: worker)
    let reported = Event.watchdogInterval(worker.id, .seconds(2))
    #expect(world.drainEvents() == [reported, reported])
    world.end(worker)
    worker.launched = worker.configuration
    worker.conversation = try channels.begin()
    reporter.startWatchdog(of: worker)
    #expect(world.drainEvents() == [.watchdogInterval(worker.id, .seconds(5))])
  }

  @Test func `A check of the watchdog reads the last sign of life from the socket`() throws {
    let worker = try world.add()
    reporter.checkWatchdog(worker.id)
    #expect(world.drainEvents() == [.watchdogSeen(worker.id, at: nil)])
    let conversation = try channels.begin()
    worker.conversation = conversation
    try channels.notify("WATCHDOG=1", conversation)
    reporter.checkWatchdog(worker.id)
    guard case .watchdogSeen(worker.id, let sign)? = world.drainEvents().first else {
      Issue.record("no answer")
      return
    }
    #expect(sign != nil)
    // The worker has been removed meanwhile.
    reporter.checkWatchdog(WorkerID("gone"))
    #expect(world.drainEvents().isEmpty)
  }
}
