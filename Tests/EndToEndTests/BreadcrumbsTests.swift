import Control
import Linux
import Testing

/// The talks' demo under a real daemon; its footprint is measured from outside.
@Suite("Breadcrumbs, a worker that sheds well") struct BreadcrumbsTests {
  private static let program =
    Surroundings.executable.split(separator: "/", omittingEmptySubsequences: false)
    .dropLast().joined(separator: "/") + "/Breadcrumbs"

  private let port: UInt16
  private let data: Scratch

  init() throws {
    port = try Surroundings.freePort()
    data = try Scratch()
  }

  private func entry(_ more: String = "") -> String {
    """
      crumbs:
        command: ["\(Self.program)", "--data", "\(data.path)", "--port", "\(port)"\(more)]
        readiness: { notify: true }

    """
  }

  private func footprint(_ daemon: TestDaemon) throws -> Int64 {
    let pid = try #require(try daemon.worker("crumbs").pid)
    return try Footprint.measure(pid)?.footprint ?? 0
  }

  private func leak(_ slides: Int, _ line: HTTPConnection) throws {
    _ = try line.get("/slideshow/leak")
    _ = try line.get("/slideshow/start")
    for _ in 1..<slides { _ = try line.get("/slideshow/next") }
  }

  @Test("One warning brings it from its peak to under a quarter, and an edit survives")
  func warning() throws {
    let daemon = try TestDaemon(MainJobTests.patient + entry())
    try daemon.wait("crumbs", toBe: "foreground")
    let line = try HTTPConnection(port: port)
    let shown = try line.get("/show/3")
    #expect(shown.contains("Vineyards") && shown.contains("2048 × 1536"))
    _ = try line.get("/edit/3/Rows/and/rows.")
    let edited = try line.get("/show/3")
    try leak(6, line)
    let peak = try footprint(daemon)
    #expect(peak > 60 << 20)
    #expect(try daemon.done("warn", "crumbs").contains("crumbs gave back"))
    let after = try footprint(daemon)
    #expect(after < peak / 4, "\(after) of \(peak)")
    #expect(try line.get("/draft") == "Rows and rows.")
    #expect(try line.get("/show/3") == edited)
    _ = try line.get("/discard")
    #expect(try line.get("/show/3") == shown)
  }

  @Test(
    "In the background it is under 16 MB, hibernates, and answers as before",
    arguments: Setting.available)
  func background(setting: Setting) throws {
    guard setting != .ordinaryUser else { return }
    let policy = MainJobTests.patient.replacing("32MB", with: "16MB")
    let daemon = try TestDaemon(policy + entry(), setting: setting)
    try daemon.wait("crumbs", toBe: "foreground")
    let line = try HTTPConnection(port: port)
    let entries = try line.get("/entries")
    let shown = try line.get("/show/8")
    let thumbnails = try line.get("/thumbnails")
    try leak(3, line)
    try daemon.done("background", "crumbs")
    #expect(try eventually { try footprint(daemon) < 16 << 20 })
    try daemon.done("hibernate", "crumbs")
    #expect(try daemon.done("status", "crumbs").contains("entry 8, The full moon"))
    // The request wakes it.
    #expect(try line.get("/show/8") == shown)
    #expect(try line.get("/thumbnails") == thumbnails)
    #expect(try line.get("/entries") == entries)
  }

  @Test("Terminated and launched again, it is where it was, edit and all")
  func restoration() throws {
    let daemon = try TestDaemon(MainJobTests.patient + entry())
    try daemon.wait("crumbs", toBe: "foreground")
    var line = try HTTPConnection(port: port)
    _ = try line.get("/show/5")
    _ = try line.get("/edit/5/Nothing,/in/great/detail.")
    let shown = try line.get("/show/5")
    _ = try line.get("/slideshow/start")
    let second = try line.get("/slideshow/next")
    let pid = try #require(try daemon.worker("crumbs").pid)
    try daemon.done("stop", "crumbs")
    try daemon.done("start", "crumbs")
    #expect(try daemon.worker("crumbs").pid != pid)
    line = try HTTPConnection(port: port)
    #expect(try line.get("/draft") == "Nothing, in great detail.")
    #expect(try line.get("/snapshot") == "entry 5, The desert, with an edit in progress")
    #expect(try line.get("/show/5") == shown)
    for _ in 2...10 { _ = try line.get("/slideshow/next") }
    // Where it had been, and once around.
    #expect(try line.get("/slideshow/next") == second)
  }

  private var device: String {
    """
    policy: \(Surroundings.policy("ios-5"))
    policy_overrides: { memory: { budget: 160MB } }
    workers:

    """
  }

  @Test("Broken, it is terminated for memory, as on stage")
  func broken() throws {
    let daemon = try TestDaemon(device + entry(", \"--broken\""))
    try daemon.wait("crumbs", toBe: "foreground")
    let line = try HTTPConnection(port: port)
    _ = try line.get("/slideshow/start")
    // Until nobody answers.
    #expect(throws: (any Error).self) {
      for _ in 0..<1000 { _ = try line.get("/slideshow/next") }
    }
    try daemon.wait("crumbs", toBe: "terminated")
    #expect(try eventually { try daemon.ask(.jetsam).jetsam != nil })
    let victims = try daemon.json(JetsamRecord.self, "jetsam").workers
      .filter { $0.victimBecause != nil }
    #expect(victims.map(\.name) == ["crumbs"])
  }

  @Test("Not broken, it goes on for ever on the same device, though it leaks between two warnings")
  func forEver() throws {
    let daemon = try TestDaemon(device + entry())
    try daemon.wait("crumbs", toBe: "foreground")
    let pid = try #require(try daemon.worker("crumbs").pid)
    let line = try HTTPConnection(port: port)
    _ = try line.get("/slideshow/leak")
    let first = try line.get("/slideshow/start")
    for round in 1...3 {
      // Past every threshold; then it may catch its breath, as a person who looks at a picture does.
      for _ in 0..<14 { _ = try line.get("/slideshow/next") }
      guard try eventually({ try footprint(daemon) < 40 << 20 }) else {
        throw TestFailure("round \(round): never warned: \(daemon.words)")
      }
      #expect(try eventually { try daemon.ask(.status).daemon?.pressure == "normal" })
    }
    #expect(try daemon.worker("crumbs").pid == pid)
    #expect(try daemon.done("jetsam") == "no worker has been terminated for memory\n")
    _ = try line.get("/slideshow/stop")
    #expect(try line.get("/slideshow/start").hasPrefix(first.prefix(50)))
  }
}
