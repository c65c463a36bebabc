import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Suspension without hibernation.
@Suite(.serialized)
struct SuspensionTests {
  @Test(
    "No call of a suspended program returns EINTR when the program is woken",
    arguments: Nightly.one(of: Victim.Parking.available))
  func noInterruptedCalls(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "torture", "2", "16", "3", parking: parking)
    let sum = try victim.ask("sum")
    for _ in 1...20 {
      try victim.suspend()
      victim.target.restartInterruptedSyscalls()
      try victim.target.wake(isStopped: parking == .traced)
      try #require(try victim.ask("sum") == sum)
    }
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }
  /// A process that was adopted by its pid has ended, and its child has another parent.
  @Test func `Processes that fell asleep with one that has ended are found and woken`() throws {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let processes = try (0..<2).map { _ in
      try spawn(
        SpawnRequest(
          path: "/bin/sleep", arguments: ["sleep", "1000"], environment: [:], directory: "/",
          input: null.raw, output: null.raw, error: null.raw))
    }
    defer {
      for process in processes {
        kill(process.pid, SIGKILL)
        waitpid(process.pid, nil, 0)
      }
    }
    let (root, other) = (processes[0], processes[1])
    var target = HibernationTarget(name: "web", root: root.identity, session: root.pid)
    target.sleepers = [root.identity, other.identity]
    #expect(try target.discover().pids == [root.pid])
    for process in processes { kill(process.pid, SIGSTOP) }
    #expect(try eventually { try ProcessStat.read(other.pid).state == .stopped })
    kill(root.pid, SIGKILL)
    #expect(try eventually { try target.discover().pids == [other.pid] })
    try target.wake()
    #expect(try eventually { try ProcessStat.read(other.pid).state == .sleeping })
  }
}
