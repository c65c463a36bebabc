import Control
import Glibc
import Linux
import Testing

/// The talks' demo under a real daemon, in a data directory of its own.
private struct Breadcrumbs {
  static let program = Surroundings.built("Breadcrumbs")

  /// Painting takes two seconds: once is enough. The photos' files, the first one first.
  private static let painted = Result<[[UInt8]], any Error> {
    let scratch = try Scratch()
    let outcome = try Command(arguments: [program, "--data", scratch.path])
      .run(in: Scratch(), limit: .seconds(120))
    guard outcome.code == 0 else { throw TestFailure("painting: \(outcome)") }
    return try (1...10).map { try readFile("\(scratch.path)/\($0).jpg") }
  }

  let daemon: TestDaemon
  let port: UInt16
  private let scratch: Scratch

  static let patient = """
    policy_overrides:
      background: { suspend_after: 1h, shed_deadline: 5s }
      hibernate: { after: never, cooldown: 0s }

    """

  init(
    _ policy: String = patient, options: String = "", setting: Setting = .traced
  ) throws {
    port = try Surroundings.freePort()
    scratch = try Scratch()
    for (index, bytes) in try Self.painted.get().enumerated() {
      let file = try Descriptor.open(
        "\(scratch.path)/\(index + 1).jpg", O_WRONLY | O_CREAT, mode: 0o644)
      let written: Void? = bytes.withUnsafeBytes { try? file.writeAll($0) }
      if written == nil { throw TestFailure("no photo \(index + 1)") }
    }
    daemon = try TestDaemon(
      policy + """
        workers:
          journal:
            command: [\(Self.program), --data, \(scratch.path)\(options)]
            listen: \(port)
            readiness: { notify: true }
        """, setting: setting)
    try daemon.wait("journal", toBe: "foreground")
  }

  func connect() throws -> HTTPConnection { try HTTPConnection(port: port) }

  /// Bytes, as the kernel counts them.
  func footprint() throws -> Int64 {
    let pid = try #require(try daemon.worker("journal").pid)
    return try #require(try Footprint.measure(pid)).footprint
  }

  /// Everything decoded that there is to decode.
  func fill(_ connection: HTTPConnection) throws {
    _ = try connection.page("/show/5")
    _ = try connection.page("/thumbnails")
    _ = try connection.post("/slideshow/start")
    _ = try connection.post("/slideshow/next/5")
  }
}

@Suite("Breadcrumbs") struct BreadcrumbsTests {
  @Test("One warning brings it from its peak to under a quarter, and loses no edit")
  func warning() throws {
    for setting in Setting.ofOwnUser {
      let crumbs = try Breadcrumbs(setting: setting)
      let connection = try crumbs.connect()
      _ = try connection.post("/edit/5", "It sings in G.")
      try crumbs.fill(connection)
      let shown = try connection.page("/show/5")
      #expect(shown.contains("It sings in G.\n(an edit in progress, not saved)"))
      let thumbnails = try connection.page("/thumbnails")
      let peak = try crumbs.footprint()
      #expect(peak > 30 << 20)
      let said = try crumbs.daemon.done("warn", "journal")
      #expect(said.hasPrefix("journal gave back "), "\(said)")
      let after = try crumbs.footprint()
      let told = try connection.page("/footprint")
      #expect(after < peak / 4, "\(after) of \(peak): \(told)")
      #expect(try connection.page("/show/5") == shown)
      #expect(try connection.page("/thumbnails") == thumbnails)
    }
  }

  @Test(
    "It answers the same after a warning, the background, hibernation, and a termination",
    arguments: Setting.ofOwnUser)
  func answersTheSame(setting: Setting) throws {
    let crumbs = try Breadcrumbs(setting: setting)
    let daemon = crumbs.daemon
    let connection = try crumbs.connect()
    _ = try connection.post("/edit/3", "Dogs, and opinions; “ä”.")
    try crumbs.fill(connection)
    _ = try connection.page("/show/3")
    let pages = ["/show", "/entries", "/snapshot", "/thumbnails", "/show"]
    let before = try pages.map { try connection.page($0) }

    try daemon.done("warn", "journal")
    #expect(try pages.map { try connection.page($0) } == before)

    try daemon.done("background", "journal")
    #expect(try crumbs.footprint() < 16 << 20)
    #expect(try pages.map { try connection.page($0) } == before)

    try daemon.done("foreground", "journal")
    try daemon.done("hibernate", "journal")
    let asleep = try daemon.worker("journal")
    #expect(asleep.state == "hibernated", "\(daemon.words)")
    #expect(asleep.snapshot?.text == before[2].trimmingLineEnd)
    try daemon.done("wake", "journal")
    // The same process, on the same connection.
    #expect(try pages.map { try connection.page($0) } == before)

    try daemon.done("terminate", "journal")
    try daemon.wait("journal", toBe: "terminated")
    let next = try crumbs.connect()
    #expect(try pages.map { try next.page($0) } == before)
    #expect(try next.post("/slideshow/next").hasPrefix("slide 7 of 10"))
    #expect(try next.post("/save") == "entry 3 is saved\n")
    #expect(try next.page("/show/3") != before[0])
  }

  @Test("The background alone makes it small enough to be hibernated by ios-5's own rules")
  func hibernates() throws {
    let crumbs = try Breadcrumbs(
      """
      policy: \(Surroundings.policy("ios-5"))
      policy_overrides:
        background: { suspend_after: 100ms, shed_deadline: 5s }
        hibernate: { after: 100ms, cooldown: 0s, only_if_faster_than_relaunch: false }

      """)
    let connection = try crumbs.connect()
    try crumbs.fill(connection)
    #expect(try crumbs.footprint() > 16 << 20)
    try crumbs.daemon.done("background", "journal")
    try crumbs.daemon.wait("journal", toBe: "hibernated")
  }

  /// A device on which five photos are no trouble, and ten are.
  private static let device = """
    policy: \(Surroundings.policy("ios-5"))
    policy_overrides: { memory: { budget: 80MB }, background: { suspend_after: 1h } }

    """

  @Test("Broken, it is terminated for memory, and the low memory report says so")
  func broken() throws {
    let crumbs = try Breadcrumbs(Self.device, options: ", --broken")
    let connection = try crumbs.connect()
    _ = try connection.post("/slideshow/start")
    for _ in 0..<50 {
      // Until nobody answers any more.
      guard (try? connection.post("/slideshow/next")) != nil else { break }
    }
    try crumbs.daemon.wait("journal", toBe: "terminated")
    // Written when it has shown what the end gave back.
    #expect(try eventually { try crumbs.daemon.ask(.jetsam).jetsam != nil })
    let record = try crumbs.daemon.json(JetsamRecord.self, "jetsam")
    let victim = try #require(record.workers.first { $0.victimBecause != nil })
    #expect(victim.name == "journal")
    #expect(victim.footprint > 60 << 20)
  }

  @Test("Otherwise it survives a long slide show on the same device")
  func longSlideShow() throws {
    let crumbs = try Breadcrumbs(Self.device)
    let connection = try crumbs.connect()
    let pid = try crumbs.daemon.worker("journal").pid
    _ = try connection.post("/slideshow/start")
    for round in 1...20 {
      #expect(try connection.post("/slideshow/next/10").hasPrefix("slide 1 of 10"), "\(round)")
    }
    #expect(try crumbs.daemon.worker("journal").pid == pid)
    #expect(try crumbs.daemon.worker("journal").state == "foreground")
    #expect(try crumbs.footprint() < 60 << 20)
    #expect(try crumbs.daemon.ask(.jetsam).jetsam == nil)
  }
}

extension String {
  fileprivate var trimmingLineEnd: String { hasSuffix("\n") ? String(dropLast()) : self }
}
