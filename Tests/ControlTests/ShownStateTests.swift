import Testing

@testable import Control

@Suite("The state that tables show") struct ShownStateTests {
  private func shown(_ code: String, _ change: (inout WorkerReport) -> Void = { _ in }) -> String {
    var worker = WorkerReport(name: "web", state: "terminated")
    worker.reason = CodedText(code, "")
    change(&worker)
    return ShownState(of: worker).text
  }

  private func ended(_ exit: ExitStatusReport) -> String {
    shown(exit.code) { $0.lastExit = exit }
  }

  @Test func `A worker without processes is shown with the reason why it has none`() {
    #expect(shown("never_started") == "never started")
    #expect(shown("requested_stop") == "stopped")
    #expect(shown("backing_off") { $0.restartsInSeconds = 3.2 } == "backing off 4 s")
    #expect(shown("waits_for_worker") { $0.waitsFor = ["db", "cache"] } == "waiting for db, cache")
    #expect(shown("waits_for_memory") == "waiting for memory")
    #expect(ended(.init(code: "exited", text: "", status: 0)) == "exited 0")
    #expect(ended(.init(code: "exited", text: "", status: 3)) == "failed 3")
    #expect(ended(.init(code: "signaled", text: "", signal: 11)) == "killed by signal 11")
    #expect(ended(.init(code: "out_of_memory", text: "")) == "killed out of memory")
    #expect(shown("pressure") == "terminated")
    #expect(shown("a_code_of_the_future") == "terminated")
  }

  @Test func `Output of a worker is awaited while it runs or a start of it is planned`() {
    var worker = WorkerReport(name: "web", state: "terminated")
    for code in ["backing_off", "waits_for_memory", "waits_for_worker"] {
      worker.reason = CodedText(code, "")
      #expect(!worker.isOver, "\(code)")
    }
    for code in ["never_started", "gave_up", "exited", "requested_stop", "pressure"] {
      worker.reason = CodedText(code, "")
      #expect(worker.isOver, "\(code)")
    }
    worker.state = "hibernated"
    #expect(!worker.isOver)
  }

  @Test func `A worker with processes is shown in its state, whatever the reason for it is`() {
    var worker = WorkerReport(name: "web", state: "hibernated")
    worker.reason = CodedText("requested_stop", "")
    #expect(ShownState(of: worker).text == "hibernated")
  }

  @Test("Each word for a worker without processes is known to `ps --state`")
  func kinds() {
    let codes = [
      "never_started", "not_started", "gave_up", "requested_stop", "backing_off",
      "waits_for_worker",
    ]
    let ends = ["attempt_failed", "watchdog", "signaled", "out_of_memory", "end_unknown", "exited"]
    for code in codes + ends {
      for status in [0, 1] as [Int32] {
        var worker = WorkerReport(name: "web", state: "terminated")
        worker.reason = CodedText(code, "")
        worker.lastExit = ExitStatusReport(code: code, text: "", status: status)
        let kind = ShownState(of: worker).kind
        #expect(ShownState.kindsOfEnded.contains(kind), "\(code): \(kind)")
      }
    }
  }

  @Test func `Totals count workers that differ only in a number together`() {
    let workers = [1, 2].map { status in
      var worker = WorkerReport(name: "w\(status)", state: "terminated")
      worker.reason = CodedText("exited", "")
      worker.lastExit = ExitStatusReport(code: "exited", text: "", status: Int32(status))
      return worker
    }
    let text = renderProcessTable(workers + [Sample.foreground])
    #expect(text.contains("3 workers: 1 foreground, 2 failed;"), "\(text)")
  }

  @Test("A running worker whose configuration has changed is shown with what applies the change")
  func changed() {
    var worker = Sample.foreground
    worker.changedSinceLaunch = ["command"]
    let text = renderProcessTable([worker])
    #expect(
      text.contains("foreground on request; configuration changed: restart to apply"), "\(text)")
  }

  /// The time is 1970-01-12 15:46 where local time is two hours ahead of UTC.
  private let clock = ReaderClock(now: 1_000_000) { _ in 7200 }

  @Test func `A sleeping worker is shown with the time of day since when it sleeps`() {
    var worker = Sample.hibernated
    worker.secondsAsleep = 3_600
    let text = renderProcessTable([worker], clock: clock)
    #expect(text.contains("suspended for 30 s; asleep since 14:46\n"), "\(text)")
    worker.secondsAsleep = 90_000
    #expect(renderProcessTable([worker], clock: clock).contains("asleep since Jan 11 14:46"))
    let status = renderWorkerStatus(worker, clock: clock)
    #expect(status.contains("asleep since  Jan 11 14:46, for 1 d 1 h\n"), "\(status)")
  }

  @Test("A running worker is shown with what woke it last, unless that is the reason of its state")
  func woken() {
    var worker = Sample.foreground
    worker.lastWake = LastWakeReport(
      code: "woken_with", text: "woken with db", secondsAgo: 3_600)
    let text = renderProcessTable([worker], clock: clock)
    #expect(text.contains("foreground on request; woken with db at 14:46\n"), "\(text)")
    let status = renderWorkerStatus(worker, clock: clock)
    #expect(status.contains("last wake    14:46, 1 h ago: woken with db\n"), "\(status)")
    worker.reason = CodedText("woken_with", "woken with db")
    #expect(renderProcessTable([worker], clock: clock).contains("woken with db\n"))
    worker.state = "suspended"
    worker.reason = CodedText("idle", "idle")
    #expect(!renderProcessTable([worker], clock: clock).contains("woken"))
  }

  @Test func `The status of a worker names its groups`() {
    var worker = Sample.foreground
    #expect(!renderWorkerStatus(worker).contains("groups"))
    worker.groups = ["bots", "chat"]
    #expect(renderWorkerStatus(worker).contains("groups       bots, chat"))
  }

  @Test func `Savings are shown below the totals of ps, and for today and the week in status`() {
    var daemon = Sample.daemon
    let today = SavingsReport(
      byteHours: 3.25 * 1024 * 1024 * 1024, asleepSeconds: 870, aliveSeconds: 1000, resumes: 53,
      resumeP50: 0.018, resumeP95: 0.0441)
    var week = today
    (week.byteHours, week.resumes) = (Double(Int64(1) << 40), 1)
    daemon.savings = RecentSavingsReport(today: today, week: week)
    let line = "today: asleep 87.0 % of the time, 53 resumes (p50 18 ms, p95 44 ms)"
    let table = renderProcessTable([Sample.foreground], daemon: daemon)
    #expect(table.contains("\n\(line)\n") && !table.contains("7 days"), "\(table)")
    let status = renderDaemonStatus(daemon)
    let ofWeek = "7 days: asleep 87.0 % of the time, 1 resume"
    #expect(status.contains(line) && status.contains(ofWeek), "\(status)")
    var top = TopModel(columns: 100, rows: 20)
    top.show([Sample.foreground], daemon)
    #expect(top.screen(color: false).contains(line))
    top.rows = 19
    #expect(!top.screen(color: false).contains(line), "the list needs the room")
    let none = SavingsReport(byteHours: 0, asleepSeconds: 0, aliveSeconds: 9, resumes: 0)
    daemon.savings = RecentSavingsReport(today: none, week: none)
    #expect(!renderDaemonStatus(daemon).contains("savings"))
  }
}
