import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Whole trees of processes: they are frozen without a race, and shared memory stays shared.
@Suite(.serialized)
struct TreeTests {
  let service = HibernationService()

  @Test(
    "A tree that forks, executes and starts threads all the time is held as a whole",
    arguments: Nightly.one(of: Victim.Parking.available))
  func forkStorm(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "forkstorm", "3", "4", parking: parking)
    let first = try victim.ask("sum").split(separator: " ")
    try #require(first.first == "sum")
    var births = try #require(Int(first[2]))
    var hibernated = 0
    var round = 0
    let end = Deadline(in: .seconds(60))
    // On a busy machine, a process may be between vfork and exec in each of the first rounds.
    while round < Nightly.rounds(8, of: 20) || hibernated * 7 < round && !end.hasPassed {
      round += 1
      try victim.suspend()
      // No process starts, ends or runs while the tree is suspended.
      let before = try Self.state(of: victim)
      usleep(2000)
      #expect(try Self.state(of: victim) == before, "round \(round)")
      let path = Fixture.imagePath()
      do {
        try victim.sleep(service, at: path)
        try victim.wake(service, from: path)
        hibernated += 1
      } catch let error as HibernationError {
        // A process is between vfork and exec (then its parent can't be stopped), or in a
        // computation.
        #expect(error.aftermath == .intact, "\(error)")
        let reasons = ["shares its memory", "busy", "can't be stopped"]
        #expect(reasons.contains(where: error.description.contains), "\(error)")
        try victim.carryOn()
      }
      let fields = try victim.ask("sum").split(separator: " ")
      try #require(fields.first == "sum", "round \(round): \(fields)")
      #expect(fields[1] == first[1])
      let now = try #require(Int(fields[2]))
      #expect(now >= births)
      births = now
    }
    #expect(hibernated * 7 >= round, "only \(hibernated) of \(round) rounds were possible")
    // The processes still fork and execute.
    let forks = try eventually {
      let fields = try victim.ask("sum").split(separator: " ")
      return fields.count == 3 && (Int(fields[2]) ?? 0) > births
    }
    #expect(forks)
  }

  @Test(arguments: Victim.Parking.available, [false, true])
  func `A child that was stopped before its worker fell asleep stays stopped when the worker wakes`(
    parking: Victim.Parking, hibernates: Bool
  ) throws {
    let script = "sleep 1000 & echo $!; while read line; do echo $line; done"
    let victim = try Victim(["sh", "-c", script], parking: parking)
    let child = try ProcessIdentity.current(of: try #require(Int32(try victim.line())))
    func isStopped() throws -> Bool { try ProcessStat.read(child.pid).state == .stopped }
    // A process that is stopped before it waits in a call can't be hibernated.
    try #require(
      try eventually {
        let stat = try ProcessStat.read(child.pid)
        return stat.name == "sleep" && stat.state == .sleeping
      })
    kill(child.pid, SIGSTOP)
    try #require(try eventually { try isStopped() })
    let target = victim.target
    for _ in 1...2 {
      let tree = try target.discover()
      try #require(tree.contains(child.pid))
      target.waits.recordStopped(in: tree)
      try victim.suspend()
      if hibernates {
        let path = Fixture.imagePath()
        try service.hibernate(HibernationRequest(target, to: path))
        try service.resume(target, from: RestingImage(path: path))
      } else {
        try target.wake(isStopped: parking == .traced)
      }
      #expect(try victim.ask("on") == "on")
      // A process that isn't traced any more needs a moment until it is stopped again.
      #expect(try eventually { try isStopped() })
    }
    kill(child.pid, SIGCONT)
    #expect(try eventually { try !isStopped() })
  }

  @Test(
    .enabled(if: hasHugePages(), "this kernel gives no huge pages"),
    arguments: Nightly.one(of: Victim.Parking.available))
  func `Huge pages are restored as huge pages`(parking: Victim.Parking) throws {
    let victim = try Victim([try Fixture.compile("thp"), "32"], parking: parking)
    let before = try #require(try victim.line().split(separator: " ").last.flatMap { Int($0) })
    // If memory is fragmented, the kernel has no huge pages.
    guard before > 0 else { return notTestedHere("the kernel gave no huge pages") }
    let sum = try victim.ask("sum")
    for _ in 0..<3 {
      let summary = try victim.cycle(service)
      #expect(summary.moved >= 32 << 20)
      #expect(try victim.ask("huge") == "huge \(before)")
      #expect(try victim.ask("sum") == sum)
    }
  }

  static func hasHugePages() -> Bool {
    let text = (try? readText("/sys/kernel/mm/transparent_hugepage/enabled")) ?? "[never]"
    return !text.contains("[never]")
  }

  /// Returns the processes, and the state of every thread.
  private static func state(of victim: Victim) throws -> [String] {
    try victim.target.discover().pids.flatMap { pid in
      try threads(of: pid).map {
        "\(pid)/\($0) \(try ProcessStat.read(thread: $0, of: pid).cpuTicks)"
      }
    }
  }
}
