import Lifecycle
import Testing

@testable import Daemon

@Suite("Workers of an earlier daemon that are being brought back") struct ReturningWorkersTests {
  private let returning = ReturningWorkers()
  private let web = WorkerID("web")
  private let database = WorkerID("db")

  private final class Calls { var all: [String] = [] }
  private let calls = Calls()

  private func wait(for id: WorkerID, _ name: String) -> Bool {
    returning.whenAdopted(id) { [calls] in calls.all.append(name) }
  }

  @Test func `A request waits for its worker, and for no other one`() {
    returning.begin(web)
    returning.begin(database)
    #expect(wait(for: web, "wake web") && wait(for: database, "wake db"))
    returning.finish(database)
    #expect(calls.all == ["wake db"])
    #expect(returning.isAdopting(web) && !returning.isAdopting(database) && returning.isUnderWay)
    returning.finish(web)
    #expect(calls.all == ["wake db", "wake web"] && !returning.isUnderWay)
  }

  @Test func `Requests are called in their order, each once`() {
    returning.begin(web)
    for name in ["first", "second", "third"] { #expect(wait(for: web, name)) }
    #expect(returning.requestCount(web) == 3)
    returning.finish(web)
    returning.finish(web)
    #expect(calls.all == ["first", "second", "third"] && returning.requestCount(web) == nil)
  }

  @Test func `A worker that isn't being brought back is not waited for`() {
    #expect(!wait(for: web, "wake web"))
    returning.finish(web)
    #expect(calls.all.isEmpty && returning.requestCount(web) == nil)
  }

  @Test func `What a request asks for when its worker is back is not waited for again`() {
    returning.begin(web)
    var waitedAgain: Bool?
    let waits = returning.whenAdopted(web) { [self] in waitedAgain = wait(for: web, "again") }
    #expect(waits)
    returning.finish(web)
    #expect(waitedAgain == false && calls.all.isEmpty)
  }
}
