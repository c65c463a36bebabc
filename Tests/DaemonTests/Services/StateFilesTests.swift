import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("Small files of the daemon's") struct StateFilesTests {
  private let scratch: Scratch
  private let loop: EventLoop
  private let disk = WorkQueue(name: "test-disk")
  private let files: StateFiles
  private let heard = Recorded<String?>()

  init() throws {
    scratch = try Scratch()
    loop = try EventLoop()
    files = StateFiles(loop: try LoopReturn(loop), disk: disk)
  }

  private func replace(_ name: String, _ text: String) {
    files.replace("\(scratch.path)/\(name)", with: text) { [heard] in heard.all.append($0) }
  }

  private func text(_ name: String) throws -> String { try readText("\(scratch.path)/\(name)") }

  @Test func `The last text is in the file, and outcomes come on the loop, in order`() throws {
    for number in 1...5 { replace("stopped", "\(number)") }
    #expect(heard.all.isEmpty)
    disk.drain()
    #expect(try text("stopped") == "5" && heard.all.isEmpty, "the loop hasn't turned")
    try loop.turn { heard.all.count == 5 }
    #expect(heard.all == [nil, nil, nil, nil, nil])
    #expect(try listDirectory(scratch.path) == ["stopped"])
    #expect((fileStatus(of: "\(scratch.path)/stopped")?.st_mode ?? 0) & 0o777 == 0o600)
  }

  @Test func `A file that can't be replaced keeps its text, and the error names it`() throws {
    try scratch.write("schedule/now", "a directory has this name")
    replace("none/stopped", "1")
    replace("schedule", "2")
    replace("stopped", "3")
    try loop.turn { heard.all.count == 3 }
    let reasons = heard.all.compactMap(\.self)
    #expect(reasons.count == 2 && heard.all.last == .some(nil))
    #expect(reasons[0].contains("none/stopped") && reasons[0].contains("No such file"))
    #expect(reasons[1].contains("schedule") && reasons[1].contains("directory"))
    #expect(try text("schedule/now") == "a directory has this name" && text("stopped") == "3")
    #expect(try listDirectory(scratch.path).sorted() == ["schedule", "stopped"], "no partial file")
  }

  @Test func `A disk that doesn't answer delays nothing, and has no outcome`() throws {
    let gate = ThreadGate()
    defer { gate.open() }
    disk.submit { gate.pass() }
    replace("stopped", "1")
    #expect(!disk.drain(within: .milliseconds(10)))
    var hasTurned = false
    loop.after(.zero) { hasTurned = true }
    try loop.turn { hasTurned }
    #expect(heard.all.isEmpty && !fileExists("\(scratch.path)/stopped"))
    gate.open()
    try loop.turn { heard.all.count == 1 }
    #expect(try text("stopped") == "1")
  }

  @Test func `An awaited job of the disk is done when its wait returns`() throws {
    let path = "\(scratch.path)/later"
    disk.write("can't write", DaemonLog()) { throw TestFailure("a full disk") }
    let wait = disk.submitAwaited {
      // The file exists when the wait returns.
      try? StateFile.replace(path, with: [1], durability: .none)
    }
    wait()
    #expect(fileExists(path))
  }
}
