import Glibc
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("What a worker writes by itself") struct WriteMeterTests {
  private static func times(_ seconds: [Int], _ written: Written, hasClients: Bool) -> [Bool] {
    var writing = RegularWriting()
    return seconds.map {
      writing.record(written, hasClients: hasClients, at: Instant.zero + .seconds($0))
    }
  }

  @Test("Two writes within 50 s of a worker without clients are work, and rarer ones aren't")
  func regular() {
    let line = Written(bytes: 29, logged: 29, reachesDisk: false)
    #expect(Self.times([0, 20, 40], line, hasClients: false) == [false, true, true])
    #expect(Self.times([0, 51, 102, 110], line, hasClients: false) == [false, false, false, true])
  }

  @Test func `Wake-ups of a worker's own threads aren't writes`() {
    let byte = Written(bytes: 1, logged: 0, reachesDisk: false)
    #expect(!Self.times([0, 1, 2, 3, 4], byte, hasClients: false).contains(true))
  }

  @Test func `Of a server only writes to files count, without its log, and three within 50 s`() {
    let file = Written(bytes: 29, logged: 0, reachesDisk: true)
    #expect(Self.times([0, 2, 4], file, hasClients: true) == [false, false, true])
    // These are the writes of an idle PostgreSQL.
    #expect(!Self.times([0, 15, 60, 75, 120, 135], file, hasClients: true).contains(true))
    let log = Written(bytes: 29, logged: 29, reachesDisk: true)
    #expect(!Self.times([0, 2, 4, 6], log, hasClients: true).contains(true))
    let pipe = Written(bytes: 29, logged: 0, reachesDisk: false)
    #expect(!Self.times([0, 2, 4, 6], pipe, hasClients: true).contains(true))
  }

  @Test("A file's page that isn't on the disk yet is counted once, and the writes to it each time")
  func pages() {
    var writing = RegularWriting()
    var results: [Bool] = []
    for second in 0..<10 {
      let written = Written(bytes: 29, logged: 0, reachesDisk: second == 0)
      results.append(
        writing.record(written, hasClients: true, at: Instant.zero + .seconds(second * 2)))
    }
    #expect(results == [false, false] + Array(repeating: true, count: 8))
  }

  @Test func `Writing is under way for 50 s after the last of several writes`() {
    var writing = RegularWriting()
    let line = Written(bytes: 29, logged: 0, reachesDisk: false)
    _ = writing.record(line, hasClients: false, at: Instant.zero)
    #expect(!writing.isUnderWay(hasClients: false, at: Instant.zero))
    _ = writing.record(line, hasClients: false, at: Instant.zero + .seconds(2))
    #expect(writing.isUnderWay(hasClients: false, at: Instant.zero + .seconds(52)))
    #expect(!writing.isUnderWay(hasClients: false, at: Instant.zero + .seconds(53)))
    #expect(!writing.isUnderWay(hasClients: true, at: Instant.zero + .seconds(2)))
  }

  @Test func `The growth of a log that is both standard output and error counts once`() {
    #expect(WriteMeter.growth(from: [100, 100], to: [130, 130]) == 30)
    #expect(WriteMeter.growth(from: [100, 7], to: [130, 9]) == 32)
    #expect(WriteMeter.growth(from: [nil, 7], to: [130, 7]) == 0)
    #expect(WriteMeter.growth(from: [100, 100], to: [0, 0]) == 0)
    #expect(WriteMeter.growth(from: [], to: [130, 130]) == 0)
  }

  @Test func `A process's writes are seen, with the part that its standard output took`() throws {
    let scratch = try Scratch()
    let path = "\(scratch.path)/out"
    let script = "echo begun; read a; echo hello; echo more >> \(scratch.path)/file; read b"
    let input = try Descriptor.pipe()
    let output = try Descriptor.open(path, O_WRONLY | O_CREAT | O_APPEND, mode: 0o600)
    let process = try spawn(
      SpawnRequest(
        path: "/bin/sh", arguments: ["sh", "-c", script], environment: [:], directory: "/",
        input: input.reading.raw, output: output.raw, error: output.raw))
    defer {
      kill(process.pid, SIGKILL)
      while waitpid(process.pid, nil, 0) < 0, errno == EINTR {}
    }
    #expect(try eventually { try readText(path) == "begun\n" })
    let tree = try ProcessTree.discover(root: process.identity)
    var meter = WriteMeter()
    #expect(meter.sample(tree) == nil)
    try input.writing.writeAll("go\n")
    var sum = Written(bytes: 0, logged: 0, reachesDisk: false)
    let isSeen = try eventually {
      if let written = meter.sample(tree) {
        sum.bytes += written.bytes
        sum.logged += written.logged
      }
      return sum.bytes >= 11 && sum.logged >= 6
    }
    #expect(isSeen && sum.bytes == 11 && sum.logged == 6, "\(sum)")
  }
}
