import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Work for which a program stands still") struct UrgentWorkTests {
  /// The length of the calling thread's turns in ms; nil if this kernel doesn't show it.
  private static func turn() throws -> Double? {
    let lines = try readText("/proc/thread-self/sched").split(separator: "\n")
    return lines.first { $0.hasPrefix("se.slice") }?.split(separator: " ").last.flatMap {
      Double($0)
    }
  }

  @Test("Its threads have short turns, and others don't")
  func turns() throws {
    // Kernels before Linux 6.12 have turns of one length.
    guard let before = try Self.turn() else { return }
    try Thread.urgently {
      let short = try Self.turn()
      #expect(short != before)
      Thread.urgently { #expect((try? Self.turn()) == short) }
      inParallel(count: 200, lanes: 2, indicesPerLane: 1) { next in
        while next() != nil {
          #expect((try? Self.turn()) == short)
          usleep(100)  // So that the other lanes get indices, too.
        }
      }
      let done = Semaphore()
      let isStarted = Thread.start(name: "test-other") {
        #expect((try? Self.turn()) == before && !Thread.isUrgent)
        done.signal()
      }
      if isStarted { done.wait() }
      #expect(try Self.turn() == short)
    }
    #expect(try Self.turn() == before)
  }
}
