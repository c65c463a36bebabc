import Control
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Reports over the control socket") struct ControlReportTests {
  private typealias Verb = ControlRequest.Verb

  private let world = ControlWorld()
  private var host: FakeControlHost { world.host }

  private func ask(_ request: ControlRequest) -> ControlWorld.Heard { world.ask(request) }

  private func ask(_ verb: Verb, _ worker: String? = nil) -> ControlWorld.Heard {
    world.ask(verb, worker)
  }

  private func only(_ heard: ControlWorld.Heard) throws -> ControlResponse {
    try world.only(heard)
  }

  @Test(
    "An unknown worker has its own result, to which the client adds a suggestion"
  )
  func unknown() throws {
    host.add("web")
    for verb in [Verb.status, .explain, .policy] {
      let response = try only(ask(verb, "wbe"))
      #expect(response.result == .unknownWorker, "\(verb)")
      #expect(response.text == "there is no worker named wbe", "\(verb)")
    }
  }

  @Test("`ps` reports all workers, wrapped ones among them, and the daemon")
  func ps() throws {
    host.add("web")
    host.wrapped = ["clangd-4"]
    let response = try only(ask(.ps))
    #expect(response.result == .done && response.text == "2 workers")
    #expect(response.workers?.map(\.name) == ["web", "clangd-4"])
    #expect(response.workers?.map(\.state) == ["background", "background"])
    #expect(response.daemon?.version == "1.2.3" && response.daemon?.policy == "test")
  }

  @Test("`status` of a worker has its snapshot")
  func status() throws {
    host.add("web")
    var request = ControlRequest(id: 7, verb: .status, worker: "web")
    request.withSnapshot = true
    let heard = ask(request)
    #expect(heard.responses.isEmpty && host.calls == ["snapshot web"])
    host.load(SnapshotStore.Snapshot(mime: "image/png", content: [1, 2, 3]))
    let response = try only(heard)
    #expect(response.text == "web is in the background")
    #expect(response.workers?.first?.snapshot?.size == 3)
    #expect(response.workers?.first?.snapshot?.data == "AQID")
  }

  @Test("`status` of a wrapped worker has its wrapper's report, or the last one")
  func statusOfWrapped() throws {
    host.wrapped = ["web"]
    let first = ask(.status, "web")
    host.respond(
      .done, "web is in the foreground", [WorkerReport(name: "web", state: "foreground")])
    #expect(try only(first).workers?.map(\.state) == ["foreground"])
    let second = ask(.status, "web")
    host.respond(.failed, "its wrapper didn't answer")
    let response = try only(second)
    #expect(response.result == .done && response.text == "web is managed by `dormouse wrap`")
    #expect(response.workers?.map(\.state) == ["background"])
  }

  @Test("`explain` explains a worker, or the order of all")
  func explain() throws {
    host.add("web")
    host.known[WorkerID("web")]?.unwatched = ["a file lock"]
    let one = try only(ask(.explain, "web"))
    #expect(one.result == .done && one.explanation?.state == "background")
    #expect(one.explanation?.unwatched == ["a file lock"])
    let all = try only(ask(.explain))
    #expect(all.ranking?.termination.map(\.worker) == ["web"])
  }

  @Test("`explain` gives the reason that `ps` gives for a worker that will be restarted")
  func plan() throws {
    host.add("web", .terminated)
    let plan = RestartPlan.waitingForMemory(why: "memory pressure was critical")
    host.known[WorkerID("web")]?.plans.restart = plan
    let explained = try only(ask(.explain, "web")).explanation
    let text = "restarts when memory is available: memory pressure was critical"
    #expect(explained?.because == CodedText("waits_for_memory", text))
  }

  @Test("`policy` shows the policy in force of the machine, or of a worker")
  func policy() throws {
    host.add("web")
    let machine = try only(ask(.policy))
    #expect(machine.text == "the policy in effect" && machine.policy?.isEmpty == false)
    let worker = try only(ask(.policy, "web"))
    #expect(worker.text == "the policy in effect for web")
    #expect(worker.policy?.contains { $0.key == "mode" && $0.value == "enforce" } == true)
  }

  @Test("`jetsam` shows the newest jetsam report or the named one, and lists all")
  func jetsam() throws {
    #expect(try only(ask(.jetsam)).text == "no worker has been terminated for lack of memory")
    host.jetsamIDs = ["new", "old"]
    let newest = ask(.jetsam)
    host.load(nil as JetsamRecord?)
    let missing = try only(newest)
    #expect(missing.result == .failed && missing.text == "there is no jetsam report new")
    #expect(missing.reports == ["new", "old"])
    var request = ControlRequest(id: 7, verb: .jetsam)
    request.report = "old"
    let old = ask(request)
    #expect(host.calls.last == "jetsam old")
    host.load(
      JetsamRecord(
        id: "old", time: "", policy: "", level: "critical", why: CodedText("pressure", ""),
        budget: 0, availableBefore: 0, availableAfter: 0, largest: nil, workers: []))
    #expect(try only(old).jetsam?.id == "old")
  }

  @Test("The verb events is answered when the journal is written, and followed from the request on")
  func journal() throws {
    let heard = ask(.events, "web")
    #expect(heard.responses.isEmpty && world.events.workers.isEmpty)
    host.saveJournal(at: JournalPlace(directory: "/journal", reports: "/reports", run: nil, at: 1))
    let response = try only(heard)
    #expect(response.text == "the journal is in /journal")
    #expect(response.journal?.directory == "/journal")
    let following = ask(ControlRequest(id: 7, verb: .events, worker: "web", follow: true))
    #expect(world.events.workers == ["web"])
    host.saveJournal(at: JournalPlace(directory: nil, reports: "/reports", run: nil, at: 1))
    #expect(try only(following).text == "there is no journal")
  }
}
