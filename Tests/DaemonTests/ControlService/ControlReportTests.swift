import Control
import Lifecycle
import Testing
import WorkerProtocol

@testable import Daemon
@testable import PolicyFile

@Suite("Reports over the control socket") struct ControlReportTests {
  private typealias Verb = ControlRequest.Verb

  private let control: ControlWorld
  private var world: AdapterWorld { control.world }

  init() throws { control = try ControlWorld() }

  private func ask(_ verb: Verb, _ worker: String? = nil) throws -> ControlResponse {
    try control.only(control.ask(verb, worker))
  }

  @Test func `An unknown worker has its own result, for the client's suggestion`() throws {
    try world.add("web")
    for verb in [Verb.status, .explain, .policy] {
      let response = try ask(verb, "wbe")
      #expect(response.result == .unknownWorker, "\(verb)")
      #expect(response.text == "there is no worker named wbe", "\(verb)")
    }
  }

  @Test func `The verb ps reports all workers, wrapped ones among them, and the daemon`() throws {
    try world.add("web")
    control.wrap("clangd-4")
    let response = try ask(.ps)
    #expect(response.result == .done && response.text == "2 workers")
    #expect(response.workers?.map(\.name) == ["web", "clangd-4"])
    #expect(response.workers?.map(\.state) == ["background", "background"])
    #expect(response.daemon?.version == "1.2.3" && response.daemon?.policy == "test")
    #expect(response.daemon?.measurements == nil)
    #expect(try ask(.status).daemon?.measurements != nil)
  }

  @Test func `The status of a worker has its snapshot`() throws {
    try world.add("web")
    #expect(try ask(.status, "web").workers?.first?.snapshot == nil)
    let image = WorkerMessage.Snapshot.image(mime: "image/png", base64: "AQID")
    _ = try world.snapshots.keep(image, of: "web", at: world.timers.now)
    var request = ControlRequest(id: 7, verb: .status, worker: "web")
    request.withSnapshot = true
    let heard = control.ask(request)
    #expect(heard.responses.isEmpty, "it is on the disk")
    let response = try control.only(heard)
    #expect(response.text == "web is in the background")
    #expect(response.workers?.first?.snapshot?.size == 3)
    #expect(response.workers?.first?.snapshot?.data == "AQID")
  }

  @Test func `The status of a wrapped worker has its wrapper's report, or the last`() throws {
    control.wrap("web")
    let first = control.ask(.status, "web")
    #expect(world.wrapped.asks.first?.timeout == .seconds(2))
    world.wrapped.answer(.done, "", WorkerReport(name: "web", state: "foreground"))
    #expect(try control.only(first).workers?.map(\.state) == ["foreground"])
    let second = control.ask(.status, "web")
    world.wrapped.answer(.failed, "its wrapper didn't answer")
    let response = try control.only(second)
    #expect(response.result == .done && response.text == "web is managed by `dormouse wrap`")
    #expect(response.workers?.map(\.state) == ["background"])
  }

  @Test func `The verb explain explains a worker, or the order of all`() throws {
    try world.add("web")
    let one = try ask(.explain, "web")
    #expect(one.result == .done && one.explanation?.state == "background")
    #expect(try ask(.explain).ranking?.termination.map(\.worker) == ["web"])
    var facts = try #require(world.makeFacts().read(WorkerID("web")))
    facts.unwatched = ["a file lock"]
    let explanation = control.service.explanation(of: WorkerID("web"), facts)
    #expect(explanation?.unwatched == ["a file lock"])
  }

  @Test func `The savings have the workers that keep memory, also those of wrappers`() throws {
    try world.add("web")
    world.driver.send(.footprint(WorkerID("web"), .megabytes(20)))
    control.wrap("clangd-4")
    let heard = control.ask(.explainSavings)
    try world.turn { !world.wrapped.asks.isEmpty }
    #expect(world.wrapped.asked == ["explain clangd-4"] && heard.responses.isEmpty)
    world.wrapped.answer(.failed, "its wrapper didn't answer")
    #expect(try control.only(heard).kept?.workers.map(\.worker).sorted() == ["clangd-4", "web"])
  }

  @Test func `The verbs explain and ps give one reason for a worker that will restart`() throws {
    let worker = try world.add("web", .terminated) { $0.restart = RestartWorld.rules }
    world.reportEnd(worker, RestartWorld.failure)
    let explained = try ask(.explain, "web").explanation
    #expect(explained?.because.code == "backing_off")
    #expect(try explained?.because == ask(.ps).workers?.first?.reason)
  }

  @Test func `The verb policy shows the policy in force of the machine, or of a worker`() throws {
    try world.add("web")
    let machine = try ask(.policy)
    #expect(machine.text == "the policy in effect" && machine.policy?.isEmpty == false)
    let worker = try ask(.policy, "web")
    #expect(worker.text == "the policy in effect for web")
    #expect(worker.policy?.contains { $0.key == "mode" && $0.value == "enforce" } == true)
    let db = try world.add("db") { $0.policy.hibernate.after = .seconds(7) }
    db.external = ExternalWorker(chosen: AdoptedPolicy(name: "server"))
    let chosen = try ask(.policy, "db").policy?.first { $0.key == "hibernate.after" }
    #expect(chosen?.value == "7s" && chosen?.text == "chosen when it was adopted")
  }

  @Test func `The newest jetsam report is shown, or the named one, and all are listed`() throws {
    #expect(try ask(.jetsam).text == "no worker has been terminated for lack of memory")
    for id in ["1", "2"] {
      world.jetsam.saveWithProcesses(
        JetsamRecord(
          id: id, time: "", policy: "", level: "critical", why: CodedText("pressure", ""),
          budget: 0, availableBefore: 0, availableAfter: 0, largest: nil, workers: []))
    }
    #expect(try ask(.jetsam).jetsam?.id == "2")
    var request = ControlRequest(id: 7, verb: .jetsam)
    request.report = "1"
    #expect(try control.only(control.ask(request)).jetsam?.id == "1")
    request.report = "3"
    let missing = try control.only(control.ask(request))
    #expect(missing.result == .failed && missing.text == "there is no jetsam report 3")
    #expect(missing.reports == ["2", "1"])
  }

  @Test func `Events are answered when the journal is written, and then followed`() throws {
    try world.add("web")
    let heard = control.ask(.events, "web")
    #expect(heard.responses.isEmpty)
    let response = try control.only(heard)
    #expect(response.text == "the journal is in \(world.state.journal)")
    #expect(response.journal?.directory == world.state.journal)
    #expect(response.journal?.reports == world.state.reports)
    let following = control.ask(ControlRequest(id: 7, verb: .events, worker: "web", follow: true))
    _ = control.ask(.foreground, "web")
    #expect(control.sent.responses.map(\.event?.to) == ["foreground"])
    #expect(try control.only(following).result == .done)
  }

  @Test func `The verb events says where there is no journal`() throws {
    let control = try ControlWorld(journal: JournalConfiguration(enabled: false))
    #expect(try control.only(control.ask(.events)).text == "there is no journal")
  }
}
