import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Programs with a timer, in several languages, that sleep again and again.
struct TickTests {
  struct Clock: CustomTestStringConvertible, Sendable {
    var name: String
    var command: [String]
    var testDescription: String { name }
    var isInstalled: Bool { Program.find(command[0]) != nil }
  }

  /// The programs. Each prints a line every half second.
  static let programs: [Clock] = [
    Clock(
      name: "python asyncio",
      command: [
        "python3", "-u", "-c",
        """
        import asyncio
        async def main():
            print('ready')
            while True:
                await asyncio.sleep(0.5)
                print('tick')
        asyncio.run(main())
        """,
      ]),
    Clock(
      name: "python threading",
      command: [
        "python3", "-u", "-c",
        """
        import threading
        print('ready')
        while not threading.Event().wait(0.5): print('tick')
        """,
      ]),
    Clock(
      name: "node",
      command: [
        "node", "-e", "console.log('ready'); setInterval(() => console.log('tick'), 500)",
      ]),
    Clock(
      name: "ruby",
      command: [
        "ruby", "-e", "$stdout.sync = true; puts 'ready'; loop { sleep 0.5; puts 'tick' }",
      ]),
    Clock(
      name: "bash", command: ["bash", "-c", "echo ready; while sleep 0.5; do echo tick; done"]),
    Clock(name: "C", command: ["{ticks}"]),
    Clock(name: "go", command: ["{go}"]),
    Clock(name: "java", command: ["java", "-Xmx64m", "-XX:+UseSerialGC", "{java}"]),
  ]

  /// Returns a program's command, and builds the files that it needs. It is `nil` if the program's
  /// language isn't installed.
  private static func command(of program: Clock) throws -> [String]? {
    switch program.name {
    case "C": return [try Fixture.compile("ticks")]
    case "go":
      guard let go = Program.find("go") else { return nil }
      let target = "\(Fixture.scratch)/ticks-go"
      let cache = target + ".cache"
      let status = try Fixture.run([
        "env", "HOME=/tmp", "GOCACHE=\(cache)", "GO111MODULE=off", "CGO_ENABLED=0", go, "build",
        "-o", target,
        Fixture.path("ticks.go"),
      ])
      _ = try Fixture.run(["rm", "-rf", cache])
      return status == 0 ? [target] : nil
    case "java":
      // A runtime without a compiler can't run a source file.
      guard program.isInstalled, Program.find("javac") != nil else { return nil }
      return program.command.dropLast() + [Fixture.path("Ticks.java")]
    default: return program.isInstalled ? program.command : nil
    }
  }

  @Test("A timer gives one tick per period, however often its program sleeps", arguments: programs)
  func ticks(program: Clock) throws {
    guard let command = try Self.command(of: program) else {
      return notTestedHere("\(program.name) is not installed")
    }
    // A busy machine makes the program miss ticks; a defect does so each time.
    var seen: [Ticks] = []
    for _ in 0..<4 where seen.last.map({ $0.count < $0.minCount }) ?? true {
      seen.append(try Self.ticks(of: command))
    }
    #expect(
      seen.allSatisfy { $0.count <= $0.maxCount } && seen.contains { $0.count >= $0.minCount },
      "\(seen)")
  }

  private struct Ticks {
    var count: Int64
    var minCount: Int64
    var maxCount: Int64
    var asleep: [Int64]
  }

  private static func ticks(of command: [String]) throws -> Ticks {
    let victim = try Victim(command, parking: Victim.Parking.available[0])
    while try victim.line() != "ready" {}
    var target = victim.target
    let waits = TimedWaits()
    target.waits = waits
    let service = HibernationService()
    let began = Clocks.monotonic
    var asleep: [Int64] = []
    // The program is awake for less than a period at a time: a timer that starts again from the
    // beginning would never end.
    for round in 0..<10 {
      let slept = Clocks.monotonic
      waits.willRest(try target.discover())
      try victim.suspend()
      waits.didRest(try target.discover())
      let path = Fixture.imagePath()
      // A program that doesn't wait in a system call at that moment is only suspended.
      let isHibernated =
        round % 2 == 1
        && (try? service.hibernate(HibernationRequest(target, to: path))) != nil
      usleep(100_000)
      if isHibernated {
        try service.resume(target, from: RestingImage(path: path))
      } else {
        target.restartInterruptedSyscalls()
        try target.wake()
      }
      asleep.append(Clocks.monotonic - slept)
      usleep(250_000)
    }
    var took = Clocks.monotonic - began
    // The program needs time to print the ticks that are due.
    usleep(100_000)
    var count: Int64 = 0
    while try victim.hasSaid { if try victim.line() == "tick" { count += 1 } }
    let period: Int64 = 500_000_000
    // A tick that is due while it sleeps comes when it wakes, and the next period begins then.
    let longest = period + (asleep.max() ?? 0) + 50_000_000
    let minCount = took / longest - 1
    // It has ticked while its ticks were read, too.
    took = Clocks.monotonic - began
    return Ticks(
      count: count, minCount: minCount, maxCount: took / period + 1,
      asleep: asleep.map { $0 / 1_000_000 })
  }
}
