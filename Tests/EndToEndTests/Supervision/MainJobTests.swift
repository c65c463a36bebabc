import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("The main job") struct MainJobTests {
  static let patient = TestDaemon.patient + "workers:\n"

  @Test(
    "A server sheds, hibernates, frees its memory, and continues on the same connection",
    arguments: Nightly.one(of: Setting.available))
  func wholeLife(setting: Setting) throws {
    let web = try WebWorker(cacheMegabytes: 6, more: "shed: { signal: USR1 }")
    // A lazily restored worker is written as a whole each time, so this test restores eagerly.
    let policy = Self.patient.replacing("hibernate: {", with: "hibernate: { resume: eager,")
    let daemon = try TestDaemon(policy + web.entry(setting), setting: setting)
    try daemon.wait("web", toBe: "foreground")
    let pid = try daemon.worker("web").pid
    let connection = try HTTPConnection(port: web.port)
    #expect(try connection.get("/count") == "1")
    let digest = try connection.get("/digest")

    #expect(try daemon.done("background", "web") == "web is in the background\n")
    #expect(try daemon.done("suspend", "web") == "web is suspended\n")
    let sheds = try connection.get("/sheds", whileAsleep: daemon)
    // It sheds once for each channel that it listens on.
    #expect(sheds == "2", "\(daemon.logText)")
    try daemon.done("suspend", "web")
    let said = try daemon.done("hibernate", "web")
    #expect(said.hasPrefix("web is hibernated in "), "\(said)")

    let listing = try daemon.json(Listing.self, "ps")
    let report = try #require(listing.workers.first)
    #expect(report.state == "hibernated")
    #expect(report.footprint <= 256 << 10, "\(report.footprint) bytes stay")
    #expect(report.peakFootprint > 8 << 20)
    #expect((report.imageSize ?? 0) > 100_000)
    #expect(report.reclaimable > 1 << 20)
    #expect(report.pid == pid)
    let freezer = setting == .frozen ? "cgroup-v2 freezer" : "SIGSTOP"
    #expect(try daemon.json(Listing.self, "status").daemon?.freezer.text == freezer)

    #expect(try daemon.done("wake", "web") == "web is in the background\n")
    try daemon.done("hibernate", "web")

    // A request to the hibernated worker is answered after the resume. The request itself may wake
    // it before the verb.
    try connection.send("/count")
    try daemon.done("wake", "web")
    #expect(try connection.receive() == "2")
    #expect(try connection.get("/digest") == digest)
    let after = try daemon.worker("web")
    #expect(after.pid == pid)
    #expect(after.imageSize == nil)
    #expect((after.resumeSeconds ?? 0) > 0)
    // The second hibernation wrote only what had changed.
    let first = try #require(report.hibernateWritten)
    #expect(try #require(after.hibernateWritten) < first / 2, "after \(first)")
    #expect((after.hibernateUnchanged ?? 0) > 4 << 20)
    #expect((after.hibernateSeconds ?? 0) > 0)
    let total = try #require(try daemon.json(Listing.self, "status").daemon)
    #expect(total.imagesInDay == 2)
    #expect(total.writtenInDay ?? 0 > first)
    // The base stays for the next hibernation until the worker ends.
    #expect(try listDirectory("\(daemon.state)/images") == ["web.image.base"])
    #expect((after.baseSize ?? 0) > 100_000)
    try daemon.done("stop", "web")
    #expect(try eventually { try listDirectory("\(daemon.state)/images").isEmpty })
  }

  @Test(arguments: Nightly.one(of: Setting.ofTestUser))
  func `A process tree is hibernated and resumed as one worker`(setting: Setting) throws {
    let scratch = try Scratch()
    let pipe = "\(scratch.path)/pipe"
    mkfifo(pipe, 0o600)
    let script = TestMachine.fixture("tree.sh")
    let daemon = try TestDaemon(
      Self.patient + """
          tree:
            command: [sh, -c, "exec sh \(script) 1 2 <> \(pipe)"]
            readiness: { log_line: ready }

        """, setting: setting)
    try daemon.wait("tree", toBe: "foreground")
    let input = try Descriptor.open(pipe, O_RDWR)
    func ask(_ question: String) throws {
      try input.writeAll("\(question)\n")
    }
    func digests() throws -> [String] {
      try daemon.done("logs", "tree", "-n", "all").split(separator: "\n").map(String.init)
        .filter { $0.hasPrefix("digest ") }
    }
    try ask("digest")
    #expect(try eventually { try digests().count == 1 })
    try daemon.done("hibernate", "tree")
    let report = try daemon.worker("tree")
    #expect(report.processes == 4)
    #expect(report.footprint <= 4 * 256 << 10)
    try ask("digest")
    try daemon.done("wake", "tree")
    #expect(try eventually { try digests().count == 2 })
    #expect(Set(try digests()).count == 1)
  }

  @Test(
    "The policy leaves a worker over hibernate.max_footprint suspended; `hibernate` overrides that")
  func overThreshold() throws {
    let web = try WebWorker(megabytes: 30)
    let daemon = try TestDaemon(Self.patient + web.entry())
    try web.waitUntilReady(under: daemon)
    try daemon.done("suspend", "web")
    let status = try daemon.done("status", "web")
    #expect(status.contains("over hibernate.max_footprint, 32 MB"), "\(status)")
    try daemon.done("hibernate", "web")
    #expect(try daemon.worker("web").state == "hibernated")
  }
}

extension HTTPConnection {
  /// Sends a request to a sleeping worker, wakes it, and returns its answer.
  func get(_ path: String, whileAsleep daemon: TestDaemon) throws -> String {
    try send(path)
    try daemon.done("wake", "web")
    return try receive()
  }
}
