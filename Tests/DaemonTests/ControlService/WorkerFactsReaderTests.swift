import Control
import Glibc
import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("What the daemon knows of a worker") struct WorkerFactsReaderTests {
  private let world: AdapterWorld

  init() throws { world = try AdapterWorld() }

  @Test func `A worker that doesn't exist has no facts`() throws {
    let reader = world.makeFacts()
    #expect(reader.read(WorkerID("web")) == nil && reader.activity(of: WorkerID("web")) == nil)
  }

  @Test("A worker is shown with what it was launched with, and with what has changed since")
  func facts() throws {
    let reader = world.makeFacts()
    let worker = try world.add()
    worker.recordLaunch()
    worker.configuration.command = ["web", "--new"]
    let facts = try #require(reader.read(worker.id))
    #expect(facts.command == ["web", "--serve"] && facts.changedSinceLaunch == ["command"])
    #expect(facts.isDeclared && !facts.isAdopted && facts.process === worker.process)
    #expect(facts.log == "/logs/web.log", "the file that it was launched to write to")
    worker.process = nil
    #expect(reader.read(worker.id)?.log == world.state.log(of: "web"))
  }

  @Test func `An adopted worker's log is its supervisor's`() throws {
    let worker = try world.add()
    worker.external = ExternalWorker(mayBeTerminated: false)
    let facts = try #require(world.makeFacts().read(worker.id))
    #expect(facts.log == nil && facts.isAdopted && facts.wrapper == nil)
  }

  @Test("A wrapper's program has no log where it has its caller's output, and names the wrapper")
  func wrapper() throws {
    let worker = try world.add()
    let facts = try #require(world.makeFacts(TestProgram(wakes: 3)).read(worker.id))
    #expect(facts.log == nil && facts.wrapper?.pid == getpid() && facts.wrapper?.wakes == 3)
    func policy(_ control: ControlWorld) throws -> [PolicyValueReport]? {
      try control.only(control.ask(.policy)).policy
    }
    #expect(try policy(ControlWorld(program: TestProgram(wakes: 3))) != policy(ControlWorld()))
  }

  @Test func `A worker's earlier ends and what is planned for it are shown`() throws {
    let worker = try world.add("web", .terminated) { $0.restart = RestartWorld.rules }
    world.reportEnd(worker, RestartWorld.failure)
    let plans = try #require(world.makeFacts().read(worker.id)).plans
    #expect(plans.exits.count == 1)
    guard case .backingOff = plans.restart else {
      Issue.record("\(String(describing: plans.restart))")
      return
    }
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
