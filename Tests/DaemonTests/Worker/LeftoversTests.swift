import Linux
import PolicyFile
import TestSupport
import Testing

@testable import Daemon
@testable import Supervision

@Suite("Processes that an earlier instance of a worker has left") struct LeftoversTests {
  private let scratch: Scratch
  private let records: WorkerRecordStore
  private let processes = FakeProcesses()

  init() throws {
    scratch = try Scratch()
    records = try WorkerRecordStore(directory: scratch.path)
  }

  private func refusal(_ name: String = "web") -> String? {
    Leftovers(records: records, logs: "/logs", processes: processes).refusal(ofLaunching: name)
  }

  private func damage(_ name: String = "web") throws {
    try scratch.write("\(name).worker", "damaged")
  }

  @Test func `A worker of which nothing is left can be launched`() throws {
    #expect(refusal() == nil)
    try damage()
    #expect(refusal() == nil)
  }

  @Test("A worker whose cgroup has processes isn't launched, and the refusal shows how to end them")
  func group() {
    processes.set { $0.groups["web"] = [41, 7, 300] }
    #expect(
      refusal()
        == "3 processes of an earlier instance still run without a valid record: "
        + "run `kill -9 7 41 300`, then `dormouse start web`")
    processes.set { $0.groups["web"] = [41] }
    #expect(refusal()?.hasPrefix("1 process of an earlier instance still runs") == true)
    #expect(refusal("api") == nil)
  }

  @Test func `A command that the operator can type names twenty processes at most`() {
    processes.set { $0.groups["web"] = Array(1...100) }
    let text = refusal() ?? ""
    #expect(text.hasPrefix("100 processes") && text.contains(" 19 20`") && !text.contains(" 21"))
  }

  @Test("Without cgroups, processes that write the worker's log are found if its record is damaged")
  func logs() throws {
    processes.set { $0.logs["/logs/web.log"] = [41] }
    #expect(refusal() == nil && processes.askedLogs == [], "it has no record: nothing was lost")
    try records.save(
      WorkerRecord(
        name: "web", process: ProcessIdentity(pid: 41, startTime: 1), session: 41, bootID: "boot",
        command: ["web"], directory: "/", logPath: "/logs/web.log", state: "background"))
    #expect(refusal() == nil && processes.askedLogs == [], "its record is valid: it was adopted")
    try damage()
    #expect(refusal()?.contains("`kill -9 41`") == true && processes.askedLogs == ["/logs/web.log"])
  }

  @Test("A cgroup whose processes can't be listed keeps its worker from being launched as well")
  func unlisted() {
    processes.set { $0.groups["web"] = [] }
    #expect(
      refusal()
        == "processes of an earlier instance still run without a valid record in /groups/web: "
        + "run `echo 1 > /groups/web/cgroup.kill`, then `dormouse start web`")
  }

  @Test func `A user that doesn't exist, and leftovers, end a launch before it makes a cgroup`() {
    func perform(_ name: String, leftovers: Bool = true, user: String? = nil) -> String? {
      let query = TermsQuery(
        name: name, wanted: WantedAccount(.forTest(name) { $0.user = user }),
        leftovers: leftovers
          ? Leftovers(records: records, logs: "/logs", processes: processes) : nil,
        cgroups: nil, memoryLimit: nil)
      if case .failure(let refusal) = query.perform() { return refusal.text }
      return nil
    }
    processes.set { $0.groups["web"] = [41] }
    #expect(perform("web")?.contains("`kill -9 41`") == true)
    #expect(perform("api") == nil)
    #expect(perform("api", user: "no-such-user-here")?.contains("no-such-user-here") == true)
    // A wrapped program runs as its caller does.
    #expect(perform("web", leftovers: false, user: "no-such-user-here") == nil)
  }

  @Test func `A name service that doesn't answer is named only where it was asked`() {
    let ours = WantedAccount(.forTest("web"))
    let other = WantedAccount(
      .forTest("web") {
        $0.user = "www"
        $0.group = "adm"
      })
    #expect(ours.isOurs && !other.isOurs)
    #expect(
      ours.timeoutText(.seconds(10))
        == "can't look for processes of an earlier instance within 10 s")
    #expect(
      other.timeoutText(.seconds(10))
        == "can't look up user www, group adm within 10 s: "
        + "check the name service (nsswitch.conf(5))"
    )
    #expect(ours.stillWaitingText.hasPrefix("an earlier launch still looks for processes"))
    #expect(other.stillWaitingText.hasSuffix("to find user www, group adm"))
  }
}
