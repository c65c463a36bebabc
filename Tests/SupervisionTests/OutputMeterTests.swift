import Linux
import Testing

@testable import Supervision

@Suite("What counts as output") struct OutputMeterTests {
  private static func output(_ bytes: UInt64, _ calls: UInt64) -> UInt64 {
    let before = ProcessWrites(bytes: 5000, calls: 70)
    let now = ProcessWrites(bytes: 5000 + bytes, calls: 70 + calls)
    return OutputMeter.output(from: [7: before], to: [7: now])
  }

  @Test(arguments: [(0, 0), (8, 1), (40, 5), (512, 64)] as [(UInt64, UInt64)])
  func `Wake-ups of a program's own threads are no output`(bytes: UInt64, calls: UInt64) {
    #expect(Self.output(bytes, calls) == 0)
  }

  @Test(arguments: [(40, 1), (41, 5), (32, 32), (520, 65)] as [(UInt64, UInt64)])
  func `Other writes count, and so do many of that size`(bytes: UInt64, calls: UInt64) {
    #expect(Self.output(bytes, calls) == bytes)
  }

  @Test func `A process that is new counts with all, and one that has ended with nothing`() {
    let before: [Int32: ProcessWrites] = [7: .init(bytes: 900, calls: 9)]
    let more: [Int32: ProcessWrites] = [
      7: .init(bytes: 900, calls: 9), 8: .init(bytes: 50, calls: 2),
    ]
    #expect(OutputMeter.output(from: before, to: more) == 50)
    // The parent has the counts of a child that it has reaped.
    let reaped: [Int32: ProcessWrites] = [7: .init(bytes: 951, calls: 12)]
    #expect(OutputMeter.output(from: more, to: reaped) == 1)
    #expect(OutputMeter.output(from: before, to: [7: .init(bytes: 20, calls: 1)]) == 0)
    #expect(OutputMeter.output(from: before, to: [:]) == 0)
  }

  @Test func `What is written to a file as standard error is known, and to a shared file it isn't`()
    throws
  {
    let apart = try TestWorker(
      "sh", "-c", "exec 2>errors; echo message >&2; echo ready; while sleep 1; do :; done")
    try apart.waitForOutput("ready")
    #expect(OutputMeter.errorLength(of: apart.process.identity.pid) == 8)
    let shared = try TestWorker(
      "sh", "-c", "echo message >&2; echo ready; while sleep 1; do :; done")
    try shared.waitForOutput("ready")
    #expect(OutputMeter.errorLength(of: shared.process.identity.pid) == nil)
  }
}
