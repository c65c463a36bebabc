import Testing

@testable import Control

@Suite("Lines about sleep between the output of workers") struct SleepLinesTests {
  private func event(
    _ from: String, _ to: String, _ text: String, freed: Int64? = nil, code: String? = nil
  ) -> EventRecord {
    var event = EventRecord(time: "2026-11-28T08:00:00.000Z", kind: "state", text: text)
    (event.worker, event.from, event.to, event.freed, event.code) = ("web", from, to, freed, code)
    return event
  }

  @Test func `A worker that is suspended, hibernated or woken gets a line with the cause`() {
    var lines = SleepLines()
    #expect(
      lines.line(for: event("background", "suspended", "idle in the background for 30 s"), at: 1)
        == "web suspended: idle in the background for 30 s")
    #expect(
      lines.line(
        for: event("suspended", "hibernated", "suspended for 2 m; 80 ms", freed: 3 << 20), at: 2)
        == "web hibernated, freed 3.0 MB: suspended for 2 m; 80 ms")
    #expect(
      lines.line(for: event("hibernated", "background", "woken by a connection; 9 ms"), at: 3)
        == "web awake: woken by a connection; 9 ms")
  }

  @Test("A worker that can't start or has ended by itself gets a line, one that was stopped none")
  func ends() {
    var lines = SleepLines()
    #expect(
      lines.line(
        for: event("launching", "terminated", "attempt failed: /x: none", code: "attempt_failed"),
        at: 1) == "web doesn't run: attempt failed: /x: none")
    #expect(
      lines.line(
        for: event("foreground", "terminated", "exited with status 3", code: "exited"), at: 2)
        == "web ended: exited with status 3")
    #expect(
      lines.line(
        for: event("foreground", "terminated", "stopped on request", code: "requested_stop"),
        at: 3) == nil)
  }

  @Test func `A report of a worker that has failed gives a line, and any other none`() {
    var worker = WorkerReport(name: "web", state: "terminated")
    worker.reason = CodedText("attempt_failed", "attempt failed: /x: none")
    #expect(failureText(of: worker) == "web doesn't run: attempt failed: /x: none")
    worker.reason = CodedText("exited", "exited with status 0")
    worker.lastExit = ExitStatusReport(code: "exited", text: "exited with status 0")
    worker.lastExit?.status = 0
    #expect(failureText(of: worker) == nil)
    worker.lastExit?.status = 3
    worker.reason.text = "exited with status 3"
    #expect(failureText(of: worker) == "web doesn't run: exited with status 3")
    worker.state = "launching"
    #expect(failureText(of: worker) == nil)
    worker.state = "terminated"
    worker.reason = CodedText("requested_stop", "stopped on request")
    #expect(failureText(of: worker) == nil)
  }

  @Test func `Launches, the foreground, heartbeats and other kinds of events get no line`() {
    var lines = SleepLines()
    #expect(lines.line(for: event("launching", "foreground", "ready"), at: 1) == nil)
    #expect(lines.line(for: event("foreground", "background", "idle"), at: 1) == nil)
    #expect(
      lines.line(for: event("suspended", "background", "due", code: "heartbeat"), at: 1) == nil)
    var pressure = event("background", "suspended", "pressure")
    pressure.kind = "pressure"
    #expect(lines.line(for: pressure, at: 1) == nil)
  }

  @Test func `A worker that sleeps and wakes often gets six lines in ten minutes, and a note`() {
    var lines = SleepLines()
    let woken = event("suspended", "background", "woken by its own timer")
    let shown = (0..<20).compactMap { lines.line(for: woken, at: Double($0 * 10)) }
    #expect(shown.count == 7, "\(shown)")
    #expect(shown.last?.contains("no more lines about it for 9 m") == true, "\(shown)")
    #expect(lines.line(for: woken, at: 600) == "web awake: woken by its own timer")
  }
}
