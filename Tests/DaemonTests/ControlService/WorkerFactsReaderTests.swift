import Control
import Glibc
import Testing

@testable import Daemon

@Suite("What the daemon knows of a worker") struct WorkerFactsReaderTests {
  private let world: AdapterWorld

  init() throws { world = try AdapterWorld() }

  /// What the daemon adds to a worker's report.
  private func report(
    _ worker: WorkerUnit, _ program: (any CallersProgram)? = nil
  ) -> WorkerReport {
    var report = WorkerReport(name: worker.id.name, state: "background")
    world.makeFacts(program).describe(worker.id, in: &report)
    return report
  }

  @Test func `A worker is shown as it was launched, with what has changed since`() throws {
    let worker = try world.add()
    worker.recordLaunch()
    #expect(report(worker).changedSinceLaunch == nil && report(worker).groups == nil)
    worker.configuration.command = ["web", "--new"]
    worker.configuration.reloadSignal = SIGHUP
    let facts = try #require(world.makeFacts().read(worker.id))
    #expect(facts.worker === worker)
    let shown = report(worker)
    #expect(shown.command == ["web", "--serve"] && shown.reloadSignal == "SIGHUP")
    #expect(shown.changedSinceLaunch?.contains("command") == true && shown.wrapper == nil)
    #expect(shown.log == "/logs/web.log", "the file that it was launched to write to")
    worker.process = nil
    #expect(report(worker).log == world.state.log(of: "web"))
  }

  @Test func `An adopted worker's log is its supervisor's`() throws {
    let worker = try world.add()
    worker.external = ExternalWorker(mayBeTerminated: false)
    let facts = try #require(world.makeFacts().read(worker.id))
    #expect(facts.worker.external != nil)
    #expect(report(worker).log == nil && report(worker).wrapper == nil)
  }

  @Test func `A wrapper's program has no log if it has its caller's output`() throws {
    let worker = try world.add()
    let shown = report(worker, TestProgram(wakes: 3))
    #expect(shown.log == nil && shown.wrapper == getpid() && shown.wakes == 3)
    #expect(shown.host == "nvim" && shown.directory == "/home/me/shop")
    func policy(_ control: ControlWorld) throws -> [PolicyValueReport]? {
      try control.only(control.ask(.policy)).policy
    }
    #expect(try policy(ControlWorld(program: TestProgram(wakes: 3))) != policy(ControlWorld()))
  }

  @Test func `A worker's uses are counted from the events that the chronicle gets`() throws {
    world.driver.connect([world.chronicle])
    let worker = try world.add()
    let reader = world.makeFacts()
    #expect(reader.activity(of: worker.id)?.uses == 0)
    world.driver.send(.activity(worker.id))
    #expect(reader.activity(of: worker.id)?.uses == 1)
  }
}
