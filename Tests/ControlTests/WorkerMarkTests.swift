import Testing

@testable import Control

@Suite("What the output marks at a worker") struct WorkerMarkTests {
  @Test func `A worker that was never started isn't terminated for some time`() {
    var worker = Sample.terminated
    worker.reason = CodedText("never_started", "not started yet")
    #expect(renderWorkerStatus(worker).hasPrefix("game: not started yet\n"))
    #expect(!renderWorkerStatus(worker).contains("reason"))
    let report = ExplanationReport(
      worker: "game", state: "terminated", secondsInState: 0.049, because: worker.reason)
    #expect(renderExplanation(report).hasPrefix("game: not started yet\n"))
  }

  @Test func `Output of ps marks a worker whose own timer is stopped`() {
    var worker = Sample.hibernated
    worker.stoppedTimerSeconds = 20
    let table = renderProcessTable([worker])
    #expect(table.contains("suspended for 30 s; its own timer (20 s) is stopped"), "\(table)")
    #expect(table.contains("hibernated !"), "\(table)")
    #expect(table.contains("\n!: work of its own is stopped while it sleeps"), "\(table)")
    worker.stoppedTimerSeconds = nil
    worker.stopsWriting = true
    #expect(renderProcessTable([worker]).contains("; its regular writing is stopped"))
    worker.stopsWriting = nil
    #expect(!renderProcessTable([worker]).contains("!"))
  }

  @Test func `Output of explain begins with the work of a worker that its sleep stops`() {
    var report = ExplanationReport(
      worker: "poller", state: "suspended", secondsInState: 60,
      because: CodedText("grace_over", "idle in the background for 30 s"))
    report.stoppedWork = CodedText("own_timer_stopped", "its own timer (every 20 s) doesn't run")
    #expect(
      renderExplanation(report).hasPrefix(
        "poller: its own timer (every 20 s) doesn't run\npoller: suspended for "))
  }

  @Test func `Output of status names memory that a hibernation leaves where it is`() {
    var worker = Sample.hibernated
    worker.sharedByFork = 70 << 20
    #expect(
      renderWorkerStatus(worker).contains(
        "shared       70.0 MB by fork, part of the footprint; hibernation doesn't move it\n"))
    worker.sharedByFork = 64 << 10
    #expect(!renderWorkerStatus(worker).contains("by fork"))
  }
}
