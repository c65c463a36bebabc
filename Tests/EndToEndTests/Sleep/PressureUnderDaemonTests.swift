import Control
import TestSupport
import Testing

@Suite("Pressure on a device of a given size") struct PressureTests {
  @Test(
    "ios-5 terminates the largest suspended worker, reports it, and spares the foreground worker")
  func biggestSuspended() throws {
    let front = try WebWorker(megabytes: 1, name: "front", more: "autostart: false")
    let middle = try WebWorker(megabytes: 15, name: "middle")
    let big = try WebWorker(megabytes: 35, name: "big", more: "restart: no")
    let daemon = try TestDaemon(
      """
      policy: \(TestMachine.policy("ios-5"))
      policy_overrides:
        memory: { budget: 160MB }
        background: { suspend_after: 1h, shed_deadline: 300ms }
        hibernate: { enabled: false }
      workers:

      """ + front.entry() + middle.entry() + big.entry())
    for name in ["middle", "big"] { try daemon.done("start", name) }
    try daemon.done("suspend", "middle", "big")
    try daemon.done("start", "front")
    #expect(try daemon.done("jetsam") == "no worker has been terminated for lack of memory\n")

    let connection = try HTTPConnection(port: front.port)
    #expect(try connection.get("/grow?mb=66") == "66 MB")
    try daemon.wait("big", toBe: "terminated")
    #expect(try eventually { try daemon.ask(.jetsam).jetsam != nil })
    let record = try daemon.json(JetsamRecord.self, "jetsam")
    let victims = record.workers.filter { $0.victimBecause != nil }
    #expect(victims.map(\.name) == ["big"])
    #expect(victims.first?.victimBecause?.text.contains("largest footprint") == true)
    #expect((victims.first?.gaveBack ?? 0) > 30 << 20)
    #expect(record.availableAfter > record.availableBefore)
    #expect(record.budget == 160 << 20)
    // They are read beside the loop, and may follow the rest of the report.
    #expect(try eventually { try daemon.ask(.jetsam).jetsam?.largestProcesses != nil })
    let processes = try #require(try daemon.ask(.jetsam).jetsam?.largestProcesses)
    #expect(processes.isComplete && (1...5).contains(processes.list.count))
    #expect(processes.list.map(\.resident).max() == processes.list.first?.resident)
    #expect(try daemon.worker("middle").state == "suspended")
    #expect(try daemon.worker("front").state == "foreground")
    #expect(try connection.get("/count") == "1")
    #expect(try daemon.done("jetsam").contains("big"))
    #expect(try daemon.done("status", "big").contains("memory pressure was "))
  }

  @Test(
    "`pressure set` raises the pressure level for a time, and the level is shown and journalled")
  func set() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
      workers:
        a: { command: [\(TestMachine.python), -c, "import time; x = b'x' * 20000000; \
      time.sleep(670)"] }
      """, isCalm: false)
    try daemon.wait("a", toBe: "foreground")
    #expect(try eventually { try daemon.worker("a").footprint > 20_000_000 })
    let plan = try daemon.done("pressure", "set", "critical", "--dry-run")
    // Without a terminal it can't ask for confirmation: it names the victims and does nothing.
    let asked = try daemon.enter(["pressure", "set", "critical"])
    #expect(asked.code == 64 && asked.error.contains("--yes"), "\(asked)")
    #expect(plan.contains("would be at least critical for 30 s (now: "), "\(plan)")
    #expect(try daemon.ask(.status).daemon?.pressureSet == nil)

    #expect(
      try daemon.done("pressure", "set", "warning", "--for", "1h").hasPrefix(
        "memory pressure is at least warning for "))
    let report = try #require(try daemon.ask(.status).daemon)
    #expect(report.pressure != "normal")
    #expect(report.pressureSet == "warning")
    #expect((3500...3600).contains(report.pressureSetSeconds ?? 0))
    #expect(try daemon.done("status").contains("set to warning for another"))
    #expect(try daemon.done("ps").contains("set to warning for another"))

    try daemon.done("pressure", "set", "auto")
    #expect(try daemon.ask(.status).daemon?.pressureSet == nil)
    #expect(try daemon.done("pressure", "set", "auto").hasPrefix("no level "))
    try daemon.done("pressure", "set", "warning", "--for", "10ms")
    #expect(try eventually { try daemon.ask(.status).daemon?.pressureSet == nil })
    #expect(try daemon.done("replay").contains("every decision is the same as recorded"))

    for wrong in [
      ["normal"], ["high"], ["critical", "--for", "0s"], ["critical", "--for", "25h"],
    ] {
      #expect(try daemon.enter(["pressure", "set"] + wrong).code == 64, "\(wrong)")
    }
  }
}

extension PressureTests {
  @Test("A protected worker survives critical pressure, and the daemon logs once that it is left")
  func protected() throws {
    let program = "import time; x = b'x' * 20000000; time.sleep(671)"
    func entry(_ name: String, _ more: String = "") -> String {
      "  \(name): { command: [\(TestMachine.python), -c, \"\(program)\"], restart: no\(more) }\n"
    }
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h }
        hibernate: { enabled: false }
        foreground: { max: unlimited }
        terminate: { settle: 50ms }
      workers:

      """ + entry("db", ", policy: { terminate: never }") + entry("job") + entry("web"))
    for name in ["db", "job", "web"] {
      try daemon.wait(name, toBe: "foreground")
      #expect(try eventually { try daemon.worker(name).footprint > 20_000_000 })
    }
    #expect(
      try daemon.done("protect", "job")
        == "job is protected: it isn't terminated for lack of memory\n")
    let pids = try ["db", "job"].map { try daemon.worker($0).pid }

    #expect(try daemon.done("ps").contains("; protected"))
    #expect(try daemon.done("status", "job").contains("`dormouse protect`"))
    #expect(try daemon.done("explain", "db").contains("`terminate: never`"))
    let shown = try daemon.done("policy", "show", "--effective", "--worker", "job")
    #expect(shown.contains("set by `dormouse protect`"), "\(shown)")
    let plan = try daemon.done("pressure", "set", "critical", "--dry-run")
    #expect(plan.contains("web"), "\(plan)")

    try daemon.done("pressure", "set", "critical", "--for", "1h", "--yes")
    try daemon.wait("web", toBe: "terminated")
    let line = "only protected workers are left at critical pressure: db, job"
    #expect(try eventually { daemon.logText.contains(line) }, "\(daemon.logText)")
    #expect(try eventually { try daemon.ask(.jetsam).jetsam != nil })
    let record = try daemon.json(JetsamRecord.self, "jetsam")
    #expect(record.workers.first { $0.name == "web" }?.victimBecause != nil)
    #expect(record.workers.first { $0.name == "db" }?.protection?.code == "protected_by_policy")
    #expect(record.workers.first { $0.name == "job" }?.protection?.code == "protected_by_request")
    #expect(try daemon.done("jetsam").contains("(protected)"))
    #expect(try daemon.done("events").contains(line))

    // Without its protection it is terminated; the other one is left.
    #expect(try daemon.done("protect", "--off", "job").contains("may be terminated"))
    try daemon.wait("job", toBe: "terminated")
    #expect(try daemon.worker("db").pid == pids[0] && pids[1] != nil)
    #expect(try daemon.worker("db").state == "foreground")
    let count = daemon.logText.split(separator: "\n").count {
      $0.contains("only protected workers")
    }
    #expect(count == 1, "\(daemon.logText)")
    #expect(try daemon.done("replay").contains("every decision is the same as recorded"))
  }
}
