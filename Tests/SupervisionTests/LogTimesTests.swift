import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite("Notes of when a log had which length") struct LogTimesTests {
  private struct World {
    let scratch: Scratch
    let destination: LogDestination
    let times: LogTimes

    init() throws {
      scratch = try Scratch()
      destination = LogDestination(path: "\(scratch.path)/web.log")
      times = LogTimes(path: "\(scratch.path)/web.times")
    }

    func record(_ size: Int, at time: Int64) throws -> String {
      try scratch.write("web.log", String(repeating: "x", count: size))
      try times.record(destination, at: time)
      return try readText("\(scratch.path)/web.times")
    }
  }

  @Test func `A note is made when the log has grown, and at most one in two seconds`() throws {
    let world = try World()
    #expect(try world.record(3, at: 100) == "100 3\n")
    #expect(try world.record(3, at: 110) == "100 3\n")
    #expect(try world.record(9, at: 101) == "100 3\n")
    #expect(try world.record(9, at: 102) == "100 3\n102 9\n")
  }

  @Test("After a rotation the notes begin again: what is left was written since the last note")
  func rotated() throws {
    let world = try World()
    _ = try world.record(50, at: 100)
    _ = try world.record(90, at: 105)
    #expect(try world.record(4, at: 110) == "105 0\n110 4\n")
    #expect(try world.record(8, at: 120) == "105 0\n110 4\n120 8\n")
  }

  @Test func `Of too many notes the older half is dropped, and whole lines stay`() throws {
    let world = try World()
    let line = "1000000000 1\n"
    try world.scratch.write(
      "web.times", String(repeating: line, count: LogTimes.limit / line.utf8.count + 1))
    let text = try world.record(2, at: 2_000_000_000)
    #expect(text.utf8.count < LogTimes.limit * 2 / 3 && text.hasSuffix("2000000000 2\n"))
    #expect(text.split(separator: "\n").allSatisfy { LogTimes.parse($0) != nil })
  }

  @Test func `A log that isn't a file is an error, and no note is made`() throws {
    let world = try World()
    try makeDirectory(world.destination.path, mode: 0o700)
    #expect(throws: SystemCallError.self) { try world.times.record(world.destination, at: 1) }
    #expect(isAbsent("\(world.scratch.path)/web.times"))
  }
}
