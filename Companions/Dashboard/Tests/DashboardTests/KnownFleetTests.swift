import Control
import Testing

@testable import Dashboard

@Suite("What the dashboard keeps of the workers") struct FleetTests {
  private func worker(
    _ name: String, _ state: String, used: Double = 100, inState: Double = 50, footprint: Int64 = 1
  ) -> WorkerReport {
    var worker = WorkerReport(name: name, state: state)
    worker.secondsSinceUse = used
    worker.secondsInState = inState
    worker.footprint = footprint
    return worker
  }

  @Test("A ring keeps the largest value of five seconds, with its age, for an hour")
  func ring() {
    var ring = FootprintRing()
    ring.add(5, at: 100)
    ring.add(9, at: 104.9)
    ring.add(7, at: 104.95)
    ring.add(1, at: 105)
    #expect(ring.points(at: 110) == [[10, 9], [5, 1]])
    ring.add(2, at: 3701)
    #expect(ring.points(at: 3701) == [[3596, 1], [1, 2]])
    for second in stride(from: 4000.0, to: 12_000, by: 1) { ring.add(3, at: second) }
    #expect(ring.points(at: 12_000).count == FootprintRing.slots)
  }

  @Test("The most recently used worker is first; those in use have the order of their names")
  func order() {
    var fleet = Fleet()
    fleet.merge(
      Answer(workers: [
        worker("old", "hibernated", used: 900), worker("c", "background", used: 3),
        worker("b", "foreground", used: 500), worker("a", "background", used: 9),
        worker("new", "suspended", used: 20),
      ]), at: 1)
    #expect(fleet.report.workers.map(\.name) == ["a", "b", "c", "new", "old"])
  }

  @Test("A snapshot is asked for once for each sleep, and removed when the worker is awake")
  func snapshots() {
    var fleet = Fleet()
    fleet.merge(Answer(workers: [worker("web", "hibernated", inState: 5)]), at: 100)
    #expect(fleet.unknownSnapshots == ["web"])
    var report = worker("web", "hibernated", inState: 6)
    report.snapshot = SnapshotReport(mime: "text/plain", size: 2, text: "hi")
    fleet.merge(Answer(workers: [report], details: ["web": report]), at: 101)
    #expect(fleet.unknownSnapshots.isEmpty)
    #expect(fleet.report.workers.first?.snapshot?.text == "hi")
    // The worker was awake between two polls.
    fleet.merge(Answer(workers: [worker("web", "hibernated", inState: 1)]), at: 120)
    #expect(fleet.unknownSnapshots == ["web"])
    fleet.merge(Answer(workers: [worker("web", "background")]), at: 121)
    #expect(fleet.unknownSnapshots.isEmpty && fleet.report.workers.first?.snapshot == nil)
  }

  @Test(
    "Only pictures without scripts are shown as pictures, and a name is encoded in their address")
  func images() {
    func shown(_ mime: String) -> ShownSnapshot {
      ShownSnapshot(SnapshotReport(mime: mime, size: 1, data: "AA=="), of: "a/b ?", version: 3)
    }
    #expect(shown("image/png").image == "/api/workers/a%2Fb%20%3F/snapshot?v=3")
    #expect(shown("image/svg+xml").image == nil)
    #expect(shown("text/html").image == nil)
  }

  @Test(
    "A worker's name survives its way through an address",
    arguments: ["web", "a b/c%d", "ä<script>", "."])
  func names(name: String) {
    #expect(pathUnescaped(pathEscaped(name)) == name)
    #expect(pathEscaped(name).utf8.allSatisfy { $0 < 0x80 && !"<>/ \"".utf8.contains($0) })
  }

  @Test("A wrong encoding in an address is no name", arguments: ["%", "%4", "%zz", "%ff", "%+1"])
  func wrongNames(text: String) { #expect(pathUnescaped(text) == nil) }

  @Test("The ladder is read from the policy's values")
  func ladder() {
    #expect(
      LadderLevel("urgent", parsing: "[hibernate, terminate suspended]").rungs == [
        "hibernate", "terminate suspended",
      ])
    #expect(LadderLevel("warning", parsing: "[]").rungs == [])
    #expect(LadderLevel("warning", parsing: "hibernate").rungs == ["hibernate"])
  }

  @Test("A log line is shown without colours, with other control characters written out")
  func logLine() {
    #expect(shownLine("\u{1B}[1;31mred\u{1B}[0m <b>&amp;") == "red <b>&amp;")
    #expect(shownLine("a\u{1B}[2Jb\u{1B}]0;x\u{7}") == "a\\u{1b}[2Jb\\u{1b}]0;x\\u{7}")
    #expect(shownLine("\u{1B}") == "\\u{1b}")
    #expect(shownLine("\u{202E}abc") == "\\u{202e}abc")
    #expect(shownLine(String(repeating: "x", count: 9000)).count == 4000)
  }

  @Test("When the daemon ends, nothing of it is shown any more; a slow one's last answer stays")
  func loss() {
    var fleet = Fleet()
    fleet.merge(Answer(workers: [worker("web", "background")]), at: 1)
    fleet.wait("it takes its time")
    #expect(fleet.report.workers.count == 1 && fleet.report.problem == "it takes its time")
    fleet.lose("no daemon")
    #expect(fleet.report.workers.isEmpty && fleet.report.problem == "no daemon")
    #expect(fleet.points(of: "web", at: 2).count == 1)
    fleet.merge(Answer(workers: [worker("web", "background")]), at: 3)
    #expect(fleet.report.problem == nil)
  }
}
