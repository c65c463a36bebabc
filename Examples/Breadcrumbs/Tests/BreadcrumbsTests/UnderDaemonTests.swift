import Foundation
import Testing

/// Breadcrumbs as the worker `journal` of a daemon, in a data directory of its own.
private struct JournalWorker {
  /// The directory with the photos. Painting takes two seconds, so they are painted once.
  private static let painted = Result<Scratch, any Error> {
    let (photos, output) = (try Scratch(), try Scratch())
    let code = try Running(
      Programs.breadcrumbs, ["--data", photos.path], output: "\(output.path)/out"
    ).wait(.seconds(120))
    guard code == 0 else { throw TestFailure("painting ended with code \(code)") }
    return photos
  }

  let daemon: DaemonProcess
  let port: UInt16
  private let scratch: Scratch

  static let patient = """
    policy: ios-5
    policy_overrides:
      pressure: { warning: never, urgent: never, critical: { available_below: 1% } }
      background: { suspend_after: 1h, shed_deadline: 5s }
      hibernate: { after: never, cooldown: 0s }

    """

  init(
    _ policy: String = patient, options: String = "", setting: Setting = .traced
  ) throws {
    port = try freePort()
    scratch = try Scratch()
    let photos = try Self.painted.get().path
    for number in 1...10 {
      try FileManager.default.copyItem(
        atPath: "\(photos)/\(number).jpg", toPath: "\(scratch.path)/\(number).jpg")
    }
    daemon = try DaemonProcess(
      policy + """
        workers:
          journal:
            command: [\(Programs.breadcrumbs), --data, \(scratch.path)\(options)]
            listen: \(port)
            readiness: { notify: true }
        """, setting: setting)
    try daemon.wait("journal", toBe: "foreground")
  }

  func connect() throws -> Connection { try Connection(port: port) }

  /// The footprint in bytes, as the kernel counts it: anonymous and shared memory that no other
  /// process has, and swap.
  func footprint() throws -> Int64 {
    let pid = try #require(try daemon.worker("journal").pid)
    let text = try String(contentsOfFile: "/proc/\(pid)/smaps_rollup", encoding: .utf8)
    let fields = text.split(separator: "\n").map { $0.split(separator: " ") }
    func kilobytes(_ name: String) -> Int64? {
      fields.first { $0.first == "\(name):" }.flatMap { Int64($0[1]) }
    }
    let dirty = try #require(kilobytes("Private_Dirty"))
    let anonymous = try #require(kilobytes("Anonymous"))
    let shared = try #require(kilobytes("Pss_Shmem"))
    return (min(dirty, anonymous + shared) + (kilobytes("Swap") ?? 0)) << 10
  }

  /// Makes the program decode all photos.
  func fill(_ connection: Connection) throws {
    _ = try connection.page("/show/5")
    _ = try connection.page("/thumbnails")
    _ = try connection.post("/slideshow/start")
    _ = try connection.post("/slideshow/next/5")
  }
}

@Suite(
  "Breadcrumbs under a daemon",
  .enabled(if: Programs.dormouse != nil, "dormouse isn't built: `swift build`, or set DORMOUSE"))
struct UnderDaemonTests {
  @Test("One warning brings Breadcrumbs from its peak to under a quarter, and no edit is lost")
  func warning() throws {
    for setting in Setting.allCases {
      let crumbs = try JournalWorker(setting: setting)
      let connection = try crumbs.connect()
      _ = try connection.post("/edit/5", "It sings in G.")
      try crumbs.fill(connection)
      let shown = try connection.page("/show/5")
      #expect(shown.contains("It sings in G.\n(an edit in progress, not saved)"))
      let thumbnails = try connection.page("/thumbnails")
      let peak = try crumbs.footprint()
      #expect(peak > 30 << 20)
      let said = try crumbs.daemon.done("warn", "journal")
      #expect(said.hasPrefix("journal freed "), "\(said)")
      let after = try crumbs.footprint()
      let reported = try connection.page("/footprint")
      #expect(after < peak / 4, "\(after) of \(peak): \(reported)")
      #expect(try connection.page("/show/5") == shown)
      #expect(try connection.page("/thumbnails") == thumbnails)
    }
  }

  @Test(
    "Breadcrumbs answers the same after a warning, the background, hibernation and a termination",
    arguments: Setting.allCases)
  func answersTheSame(setting: Setting) throws {
    let crumbs = try JournalWorker(setting: setting)
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
    #expect(asleep.state == "hibernated", "\(daemon.logText)")
    #expect(asleep.snapshot?.text == before[2].trimmingLineEnd)
    try daemon.done("wake", "journal")
    // Its process still answers on the connection that was open.
    #expect(try pages.map { try connection.page($0) } == before)

    try daemon.done("terminate", "journal")
    try daemon.wait("journal", toBe: "terminated")
    let next = try crumbs.connect()
    #expect(try pages.map { try next.page($0) } == before)
    #expect(try next.post("/slideshow/next").hasPrefix("slide 7 of 10"))
    #expect(try next.post("/save") == "entry 3 is saved\n")
    #expect(try next.page("/show/3") != before[0])
  }

  @Test("In the background Breadcrumbs is small enough for ios-5 to hibernate it")
  func hibernates() throws {
    let crumbs = try JournalWorker(
      """
      policy: ios-5
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

  /// A device with memory for five photos, and not for ten. It doesn't hibernate: otherwise a
  /// worker whose client pauses would be hibernated instead of terminated.
  private static let device = """
    policy: ios-5
    policy_overrides:
      memory: { budget: 80MB }
      background: { suspend_after: 1h }
      hibernate: { enabled: false }

    """

  @Test("Breadcrumbs with the leak is terminated for memory, and the jetsam report says so")
  func broken() throws {
    let crumbs = try JournalWorker(Self.device, options: ", --broken")
    let connection = try crumbs.connect()
    _ = try connection.post("/slideshow/start")
    for _ in 0..<50 {
      do { _ = try connection.post("/slideshow/next") } catch { break }  // it has ended
    }
    try crumbs.daemon.wait("journal", toBe: "terminated")
    // The report is written after the freed memory was measured.
    #expect(try eventually { try crumbs.daemon.jetsam().workers != nil })
    let workers = try #require(try crumbs.daemon.jetsam().workers)
    let victim = try #require(workers.first { $0.victimBecause != nil })
    #expect(victim.name == "journal")
    #expect(victim.footprint > 60 << 20)
  }

  @Test("Without the leak Breadcrumbs survives a long slide show on the same device")
  func longSlideShow() throws {
    let crumbs = try JournalWorker(Self.device)
    let connection = try crumbs.connect()
    let pid = try crumbs.daemon.worker("journal").pid
    _ = try connection.post("/slideshow/start")
    for round in 1...20 {
      #expect(try connection.post("/slideshow/next/10").hasPrefix("slide 1 of 10"), "\(round)")
    }
    #expect(try crumbs.daemon.worker("journal").pid == pid)
    #expect(try crumbs.daemon.worker("journal").state == "foreground")
    #expect(try crumbs.footprint() < 60 << 20)
    #expect(try crumbs.daemon.jetsam().code == "no_report")
  }
}

extension String {
  fileprivate var trimmingLineEnd: String { hasSuffix("\n") ? String(dropLast()) : self }
}
