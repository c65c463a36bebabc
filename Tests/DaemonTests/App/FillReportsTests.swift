import TestSupport
import Testing

@testable import Daemon
@testable import Hibernation

@Suite("Pages that are still missing after a wake") struct FillReportsTests {
  private let loop: EventLoop
  private let loopReturn: LoopReturn
  private let hibernation = HibernationService(lanes: 1, separatesWorkers: true)
  private let scratch: Scratch
  private let log: TestLog
  private let measured = Recorded<String>()
  private let losses = Recorded<String>()

  init() throws {
    scratch = try Scratch()
    log = TestLog(in: scratch)
    loop = try EventLoop()
    loopReturn = try LoopReturn(loop)
    FillReports.follow(
      hibernation, loopReturn: loopReturn, log: log.log,
      measure: { [measured] in measured.all.append($0.name) },
      lose: { [losses] in losses.all.append("\($0.name): \($1)") })
  }

  @Test func `A worker is measured again, on the loop, when its last page has come`() throws {
    let ended = try #require(hibernation.shared.withLock { $0.fillEnded })
    try TestThread {
      ended("web")
      ended("api")
      ended("web")
    }.join()
    #expect(measured.all == [], "not on another thread")
    try loop.turn { measured.all.count >= 3 }
    #expect(measured.all == ["web", "api", "web"])
    #expect(log.text == "")
  }

  @Test func `A lost trim is reported on the loop, with its reason`() throws {
    let lost = try #require(hibernation.shared.withLock { $0.trimLost })
    try TestThread { lost("web", "it forks often") }.join()
    #expect(losses.all == [], "not on another thread")
    try loop.turn { !losses.all.isEmpty }
    #expect(losses.all == ["web: it forks often"])
  }

  @Test func `The end of a worker whose pages can't be restored is logged at once`() throws {
    let failed = try #require(hibernation.shared.withLock { $0.fillFailed })
    try TestThread {
      failed(
        "web", HibernationError(.filling, "the image is damaged", aftermath: .unverifiable))
    }.join()
    #expect(
      log.text.hasSuffix(
        " web: terminated: its missing pages can't be restored: the image is damaged "
          + "(while filling in the background)\n"))
    try TestThread { failed("api", HibernationError(.filling, "Too many open files")) }.join()
    #expect(
      log.text.hasSuffix(
        " api: its missing pages can't be filled in yet: Too many open files "
          + "(while filling in the background); it waits for them\n"))
    #expect(measured.all == [])
  }
}
