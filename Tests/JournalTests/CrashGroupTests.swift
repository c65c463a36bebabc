import Policy
import Testing

@testable import Journal
@testable import Lifecycle

@Suite("Crashes by cause") struct CrashGroupTests {
  private let web = WorkerID("web")
  private let wall = WallTime(nanoseconds: 1_000_000_000)

  private func ended(_ cause: Cause) -> [Directive] {
    [
      .transition(
        Transition(worker: web, from: .background, to: .terminated, cause: cause, at: .zero))
    ]
  }

  @Test func `Crashes with the same cause are one group, and others are another group`() {
    var ledger = CrashLedger()
    for (second, status) in [ExitStatus.exited(3), .signaled(11), .exited(3), .outOfMemory]
      .enumerated()
    {
      ledger.keep(["line \(second)"], of: web)
      ledger.record(.exited(web, status), directives: ended(.exited(status))) {
        WallTime(nanoseconds: Int64(second))
      }
    }
    let groups = ledger.close()[web]?.groups ?? []
    #expect(groups.map(\.cause) == [.signal(11), .status(3), .kernel])
    #expect(groups.map(\.count) == [1, 2, 1])
    #expect(groups.map(\.lines) == [["line 1"], ["line 2"], ["line 3"]])
    #expect(ledger.close().isEmpty, "nothing is counted twice")
  }

  @Test func `A requested end, an end for memory and an end with status 0 are no crashes`() {
    var ledger = CrashLedger()
    for cause in [Cause.requested(.stop), .pressure(.critical), .exited(.exited(0)), .released] {
      ledger.keep(["bye"], of: web)
      ledger.record(.exited(web, .exited(0)), directives: ended(cause)) { wall }
    }
    #expect(ledger.close().isEmpty)
  }

  @Test func `The lines of an end that wasn't a crash don't appear at a later crash`() {
    var ledger = CrashLedger()
    ledger.keep(["bye"], of: web)
    ledger.record(.exited(web, .exited(0)), directives: []) { wall }
    ledger.record(.exited(web, .exited(1)), directives: ended(.exited(.exited(1)))) { wall }
    #expect(ledger.close()[web]?.groups.map(\.lines) == [nil])
  }

  @Test("A missed deadline and a launch that failed are separate causes, with their reasons")
  func deadlines() {
    var ledger = CrashLedger()
    ledger.record(.launchFailed(web, "no such file"), directives: []) { wall }
    ledger.record(
      .exited(web, .signaled(9)), directives: ended(.watchdog("wasn't ready within 20 s"))
    ) { wall }
    let groups = ledger.close()[web]?.groups ?? []
    #expect(groups.map(\.cause) == [.deadline, .launch])
    #expect(groups.map(\.reason) == ["wasn't ready within 20 s", "no such file"])
  }

  @Test func `Of more causes than are kept, the one that is the longest ago is dropped`() {
    var groups = CrashGroups()
    for status in Int32(1)...40 {
      groups.add(
        CrashGroup(cause: .status(status), at: Int64(status), reason: "", lines: nil))
    }
    #expect(groups.groups.map(\.cause) == (25...40).map { CrashCause.status($0) })
  }

  @Test("A day's record keeps its crashes, and a record of an earlier version has none")
  func recorded() throws {
    var tally = WorkerTally()
    tally.crashes = 1
    var day = DayRecord(day: 20_000, tallies: [web: tally])
    #expect(try DayRecord(day.encoded()) == day)
    #expect(try !String(decoding: day.encoded(), as: UTF8.self).contains("\"crashes\":{"))
    var groups = CrashGroups()
    groups.add(
      CrashGroup(cause: .signal(11), at: 7, reason: "ended by SIGSEGV", lines: ["a \"b\""]))
    groups.add(CrashGroup(cause: .launch, at: 8, reason: "no such file", lines: nil))
    day.add([:], crashes: [web: groups])
    #expect(try DayRecord(day.encoded()) == day)
  }
}
