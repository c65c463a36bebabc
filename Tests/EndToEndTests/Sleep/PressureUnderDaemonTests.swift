import Control
import Linux
import TestSupport
import Testing

@Suite("Pressure on a device of a given size") struct PressureTests {
  @Test(
    "ios-5 terminates the largest suspended worker, reports it, and spares the foreground worker")
  func biggestSuspended() throws {
    let front = try WebWorker(megabytes: 1, name: "front", more: "autostart: false")
    let middle = try WebWorker(megabytes: 15, name: "middle")
    let big = try WebWorker(megabytes: 35, name: "big")
    let daemon = try TestDaemon(
      """
      policy: \(Surroundings.policy("ios-5"))
      policy_overrides:
        memory: { budget: 160MB }
        background: { suspend_after: 1h, shed_deadline: 300ms }
        hibernate: { after: never }
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

  @Test("ios-5 hibernates workers that are small enough before it terminates any")
  func hibernateFirst() throws {
    let front = try WebWorker(megabytes: 1, name: "front", more: "autostart: false")
    let small = try WebWorker(megabytes: 3, name: "small")
    let daemon = try TestDaemon(
      """
      policy_overrides:
        memory: { budget: 64MB }
        background: { suspend_after: 1h, shed_deadline: 300ms }
        hibernate: { after: never, only_if_faster_than_relaunch: false }
      workers:

      """ + front.entry() + small.entry())
    try daemon.done("start", "small")
    try daemon.done("suspend", "small")
    try daemon.done("start", "front")
    let connection = try HTTPConnection(port: front.port)
    #expect(try connection.get("/grow?mb=32") == "32 MB")
    try daemon.wait("small", toBe: "hibernated")
    #expect(daemon.words.contains("small: suspended → hibernating: memory pressure was"))
    #expect(try daemon.ask(.jetsam).jetsam == nil)
  }

  @Test(
    "iphone-os-3 warns all workers, then terminates the background worker, never the foreground one"
  )
  func warnThenTerminate() throws {
    let front = try WebWorker(
      megabytes: 1, cacheMegabytes: 10, name: "front", more: "autostart: false")
    let back = try WebWorker(megabytes: 15, cacheMegabytes: 5, name: "back")
    let daemon = try TestDaemon(
      """
      policy: \(Surroundings.policy("iphone-os-3"))
      policy_overrides:
        memory: { budget: 120MB }
        background: { shed_deadline: 600ms }
      workers:

      """ + front.entry() + back.entry())
    try daemon.done("start", "back")
    let toBack = try HTTPConnection(port: back.port)
    let toFront: HTTPConnection
    try daemon.done("start", "front")
    toFront = try HTTPConnection(port: front.port)
    // The change to the background is a shed request as well.
    #expect(try eventually { try daemon.worker("back").lastShed != nil })
    // What the daemon has measured last may be older than the end of their launches.
    let footprints = try [daemon.currentFootprint("back"), daemon.currentFootprint("front")]
    let used = Int(footprints.reduce(0, +) >> 20)
    #expect(try toFront.get("/grow?mb=\(105 - used)").hasSuffix("MB"))
    let warned = try eventually { try toFront.get("/sheds") == "1" }
    let table = try daemon.done("ps")
    #expect(warned, "\(used) MB before, now \(table)\(daemon.words)")
    #expect(try eventually { try toBack.get("/sheds") == "2" }, "\(daemon.words)")
    #expect(try daemon.worker("back").state == "background", "\(daemon.words)")

    _ = try toFront.get("/grow?mb=18")
    try daemon.wait("back", toBe: "terminated")
    #expect(try daemon.worker("front").state == "foreground")
    #expect(try toFront.get("/count") == "1")
  }

  @Test(
    "`pressure set` raises the pressure level for a time, and the level is shown and journalled")
  func set() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
      workers:
        a: { command: [\(Surroundings.python), -c, "import time; x = b'x' * 20000000; time.sleep(670)"] }
      """)
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
    #expect(try daemon.done("pressure", "set", "auto").hasPrefix("no level was set"))
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
