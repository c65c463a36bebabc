import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The timeouts of a sleeping worker: the steps of a daemon, without a daemon.
struct TimeoutTests {
  /// How the worker sleeps: only suspended, or hibernated, with an eager or a lazy restore.
  enum Sleep: String, CaseIterable, CustomTestStringConvertible {
    case suspended, hibernated, lazy
    var testDescription: String { rawValue }
  }

  static let ways: [(Sleep, Victim.Parking)] = Nightly.oneOfEach(
    Sleep.allCases.map { sleep in
      Victim.Parking.available.filter { sleep != .lazy || $0 == .frozen }.map { (sleep, $0) }
    })

  static let kinds = [
    "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "ppoll-constant", "select",
    "pselect6", "nanosleep", "clock_nanosleep", "clock_nanosleep-until", "futex", "futex-until",
    "futex_waitv", "sem_timedwait", "mq_timedreceive", "semtimedop", "sigtimedwait",
  ]
  /// These calls have the timeout of the socket.
  static let socketKinds = ["recv", "read", "recvmsg", "accept"]

  /// A program with a thread in each call, and the service that puts it to sleep.
  private final class Subject {
    let victim: Victim
    let service = HibernationService()
    let sleep: Sleep
    let path = Fixture.imagePath()
    let began: Int64
    /// The time before the worker's calls began; `began` is after that.
    private let spawned = Clocks.monotonic
    let waits = TimedWaits()
    private(set) var target: HibernationTarget
    /// The time in ms that the sleeps and wakes themselves took: a few ms on a quiet machine, and
    /// more on a busy one. Between a reading of the clock and the worker's next instruction, this
    /// time counts as the worker's.
    private(set) var effort: Int64 = 0

    init(_ kinds: [String], _ milliseconds: Int, _ sleep: Sleep, _ parking: Victim.Parking) throws {
      self.sleep = sleep
      victim = try Victim(
        ready: [try Fixture.compile("timeouts"), "\(milliseconds)"] + kinds, parking: parking)
      began = Clocks.monotonic
      target = victim.target
      target.waits = waits
    }

    var age: Int64 { (Clocks.monotonic - began) / 1_000_000 }
    /// The time for which the worker's calls have waited, or more.
    var maxAge: Int64 { (Clocks.monotonic - spawned) / 1_000_000 }

    func wait(until milliseconds: Int64) { usleep(useconds_t(max(0, milliseconds - age) * 1000)) }

    private func measured(_ body: () throws -> Void) rethrows {
      let start = age
      defer { effort += age - start }
      try body()
    }

    func run() throws { try measured(putToSleep) }
    func wake() throws { try measured(wakeUp) }

    private func putToSleep() throws {
      waits.willRest(try target.discover())
      try victim.suspend()
      waits.didRest(try target.discover())
      if sleep == .suspended { return }
      try service.hibernate(
        HibernationRequest(target, to: path, restore: sleep == .lazy ? .lazy : .eager))
    }

    private func wakeUp() throws {
      if sleep == .suspended {
        target.restartInterruptedSyscalls()
        return try target.wake()
      }
      try service.resume(
        target, from: RestingImage(path: path, sleep == .lazy ? .lazy(learns: true) : .eager))
    }

    /// Wakes the worker as a new daemon, which has only the data that its predecessor has kept, or
    /// not even that.
    func wakeByAnother(keeping: Bool) throws {
      target.waits = keeping ? TimedWaits(try #require(waits.kept)) : TimedWaits()
      try HibernationService().recover(target, from: path)
    }

    /// Returns the duration of each call in ms, by kind.
    func results() throws -> [String: Int64] {
      var durations: [String: Int64] = [:]
      while case let line = try victim.line(), line != "done" {
        let fields = line.split(separator: " ").map(String.init)
        #expect(fields.count == 3 && fields[1] == "ok", "\(line)")
        if fields.count == 3 { durations[fields[0]] = Int64(fields[2]) }
      }
      return durations
    }
  }

  /// The time in ms that a busy machine may add.
  private static let slack: Int64 = 700

  /// The durations of an attempt's calls, in ms, and the time when the last of them should have
  /// ended.
  private typealias Attempt = (results: [String: Int64], latest: Int64)

  /// Checks that no call ends too early. A busy machine makes some calls late; a defect does so
  /// each time.
  private func expectInTime(_ minDuration: Int64, _ attempt: () throws -> Attempt) throws {
    var late: [String] = []
    for _ in 0..<5 {
      let (results, latest) = try attempt()
      for (kind, took) in results {
        #expect(took >= minDuration, "\(kind) took \(took) ms of \(minDuration)")
      }
      late = results.filter { $0.value >= latest }.map {
        "\($0.key) took \($0.value) ms of \(minDuration), at most \(latest)"
      }
      if late.isEmpty { return }
    }
    Issue.record("late each time: \(late)")
  }

  @Test("A call that a sleep interrupts ends at its original time", arguments: ways)
  func endsInTime(sleep: Sleep, parking: Victim.Parking) throws {
    try expectInTime(3000) {
      let subject = try Subject(Self.kinds, 3000, sleep, parking)
      subject.wait(until: 1000)
      try subject.run()
      subject.wait(until: 2000)
      try subject.wake()
      let latest = max(3000, subject.age) + Self.slack + subject.effort
      return (try subject.results(), latest)
    }
  }

  @Test("A call that is overdue when its worker wakes ends at once", arguments: ways)
  func overdue(sleep: Sleep, parking: Victim.Parking) throws {
    // An emulated machine takes a second to make it sleep.
    try expectInTime(2000) {
      let subject = try Subject(Self.kinds + Self.socketKinds, 2000, sleep, parking)
      subject.wait(until: 300)
      try subject.run()
      subject.wait(until: 2200)
      try subject.wake()
      let latest = subject.age + Self.slack + subject.effort
      return (try subject.results(), latest)
    }
  }

  @Test("Many short sleeps don't prevent a call from ending", arguments: ways)
  func starves(sleep: Sleep, parking: Victim.Parking) throws {
    try expectInTime(2500) {
      let subject = try Subject(Self.kinds, 2500, sleep, parking)
      // No sleep begins that couldn't end before the calls do.
      var longest: Int64 = 0
      while subject.age + longest < 2500 {
        let start = subject.age
        try subject.run()
        longest = max(longest, subject.age - start)
        usleep(100_000)
        try subject.wake()
        usleep(300_000)
      }
      let latest = subject.age + Self.slack + subject.effort
      return (try subject.results(), latest)
    }
  }

  @Test("After several sleeps a call waits only for its remaining time", arguments: ways)
  func severalSleeps(sleep: Sleep, parking: Victim.Parking) throws {
    try expectInTime(4000) {
      let subject = try Subject(Self.kinds, 4000, sleep, parking)
      // On a machine on which the sleeps take seconds, the calls would end before the last one.
      for _ in 0..<3 where subject.age < 2500 {
        try subject.run()
        usleep(50_000)
        try subject.wake()
        usleep(100_000)
      }
      let latest = max(4000, subject.age) + Self.slack + subject.effort
      return (try subject.results(), latest)
    }
  }

  @Test(
    "A later daemon knows the passed time of a call, or counts the time asleep", .needsCgroup,
    arguments: [true, false])
  func anotherDaemon(keeping: Bool) throws {
    try expectInTime(3000) {
      let subject = try Subject(["epoll_wait", "semtimedop", "select"], 3000, .hibernated, .frozen)
      subject.wait(until: 800)
      try subject.run()
      let asleep = subject.age
      subject.wait(until: asleep + 1200)
      try subject.wakeByAnother(keeping: keeping)
      let latest = max(3000 + (keeping ? 0 : asleep), subject.age) + Self.slack + subject.effort
      return (try subject.results(), latest)
    }
  }

  @Test(
    "An overdue call on a socket gets the data that arrived during the sleep",
    arguments: Nightly.one(of: Victim.Parking.available))
  func accepts(parking: Victim.Parking) throws {
    let program = try Fixture.compile("timeouts")
    let began = Clocks.monotonic
    let victim = try Victim([program, "signal", "3000", "accept"], parking: parking)
    let port = try #require(Int(try victim.line().split(separator: " ")[1]))
    try victim.waitUntilBlocked()
    let service = HibernationService()
    let path = try victim.sleep(service)
    let isAsleepInTime = Clocks.monotonic - began < 2_900_000_000
    let connection = try Talk(connectedTo: port)
    usleep(3_200_000)
    try victim.wake(service, from: path)
    let fields = try victim.line().split(separator: " ")
    // On a busy machine the call may have ended before the sleep.
    #expect(fields[0] == "accept" && (Int(fields[1]) ?? -1 >= 0 || !isAsleepInTime), "\(fields)")
    withExtendedLifetime(connection) {}
  }

  @Test(arguments: Nightly.one(of: Victim.Parking.available))
  func `A wait for asynchronous I/O ends in time, too`(parking: Victim.Parking) throws {
    try expectInTime(1500) {
      let subject = try Subject(["io_getevents"], 1500, .suspended, parking)
      subject.wait(until: 300)
      try subject.run()
      subject.wait(until: 900)
      try subject.wake()
      let latest = max(1500, subject.age) + Self.slack + subject.effort
      let results = try subject.results()
      #expect(results.keys.elementsEqual(["io_getevents"]))
      return (results, latest)
    }
  }

  @Test("The end of a sleeping worker's calls is known, however often they were interrupted")
  func dueTimes() throws {
    let kinds = ["epoll_wait", "nanosleep", "ppoll", "recv", "sem_timedwait"]
    let subject = try Subject(kinds, 60_000, .suspended, Victim.Parking.available[0])
    subject.wait(until: 500)
    for round in 1...3 {
      let before = 60_000 - subject.age
      try subject.run()
      let left = 60_000 - subject.maxAge
      let times = subject.waits.dueTimes
      #expect(Set(times.map(\.remaining)).count >= kinds.count - 1)
      for time in times {
        // It isn't known how long a socket's timeout had run before this wake.
        let limit = before + (round > 1 ? subject.age : 0)
        let remaining = Int64(time.remaining / .milliseconds(1))
        #expect(
          remaining >= left - 50 && remaining < limit + Self.slack + subject.effort,
          "round \(round): \(time)")
        // For a call with an absolute end, the whole is at most the time since the thread waits.
        let whole = Int64((time.whole ?? .seconds(60)) / .milliseconds(1))
        #expect(whole <= 60_000 && whole >= left - 50, "round \(round): \(time)")
      }
      // These are all calls except those with a socket's timeout.
      #expect(
        times.filter { $0.remaining < .milliseconds(before + Self.slack + subject.effort) }.count
          >= kinds.count - 1)
      usleep(200_000)
      try subject.wake()
      usleep(200_000)
    }
  }
}
