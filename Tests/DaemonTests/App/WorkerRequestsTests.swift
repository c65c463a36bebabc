import Lifecycle
import Testing

@testable import Daemon

@Suite("Requests about workers") struct WorkerRequestsTests {
  private let timers = FakeLoop()
  private let notes = EventNotes()
  private let returning = ReturningWorkers()
  private let driver: EngineDriver
  private let requests: WorkerRequests
  private let unit = WorkerUnit.forTest("web")
  private var id: WorkerID { unit.id }

  private final class Heard { var codes: [Answer.Code] = [] }
  private let heard = Heard()

  init() {
    driver = .forTest(timers, notes)
    requests = WorkerRequests(driver: driver, returning: returning)
    driver.send(.added(unit.id, unit.profile))
  }

  private func ask(_ verb: Request.Verb) {
    requests.request(verb, id) { [heard] in heard.codes.append($0.code) }
  }

  @Test func `Requests about a worker of an earlier daemon wait for its adoption`() {
    returning.begin(id)
    ask(.wake)
    ask(.start)
    #expect(notes.events == ["added"] && heard.codes.isEmpty && requests.isAlive(id))
    driver.send(.adopted(id, unit.profile, .background))
    returning.finish(id)
    #expect(notes.events == ["added", "adopted", "request", "request"])
    #expect(heard.codes == [.done, .done], "it runs: a second process isn't started")
    #expect(requests.isAlive(id))
  }

  @Test func `Requests about a worker that ends before its adoption are refused`() {
    returning.begin(id)
    ask(.wake)
    returning.finish(id)
    #expect(heard.codes == [.refused] && !requests.isAlive(id))
  }

  @Test func `A worker counts as alive if the engine says so, and while it is being adopted`() {
    #expect(!requests.isAlive(id))
    #expect(!requests.isAlive(WorkerID("unknown")))
    driver.send(.adopted(id, unit.profile, .background))
    #expect(requests.isAlive(id))
  }
}
