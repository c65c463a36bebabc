import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// A signal that arrives while its process sleeps: the process's call ends, or doesn't, as if the
/// process had been awake.
struct SignalTests {
  struct Case: CustomTestStringConvertible, Sendable {
    var kind: String
    var restarts: Bool
    var isHibernated: Bool
    var parking: Victim.Parking

    var testDescription: String {
      "\(kind)\(restarts ? " with SA_RESTART" : ""), "
        + "\(isHibernated ? "hibernated" : "suspended"), \(parking)"
    }

    /// True if the call ends. Some calls return EINTR even if the handler was set up with
    /// SA_RESTART, others only without it (signal(7)).
    var isInterrupted: Bool { kind != "stdin" || !restarts }
  }

  static let cases: [Case] = Nightly.oneOfEach(
    [
      "epoll_wait", "poll", "select", "ppoll-constant", "nanosleep", "semtimedop", "sigtimedwait",
      "recv", "stdin",
    ].flatMap { kind in
      [false, true].map { restarts in
        [false, true].flatMap { isHibernated in
          Victim.Parking.available.map {
            Case(kind: kind, restarts: restarts, isHibernated: isHibernated, parking: $0)
          }
        }
      }
    })

  @Test(
    "A signal that arrives during the sleep interrupts the call when its process wakes",
    arguments: cases)
  func interrupts(one: Case) throws {
    let victim = try Victim(
      ready: [try Fixture.compile("timeouts"), "signal", "60000", one.kind]
        + (one.restarts ? ["restart"] : []), parking: one.parking)
    try victim.waitUntilBlocked()
    let service = HibernationService()
    let path = Fixture.imagePath()
    if one.isHibernated { try victim.sleep(service, at: path) } else { try victim.suspend() }
    kill(victim.process.pid, SIGUSR1)
    if one.isHibernated {
      try victim.wake(service, from: path)
    } else {
      victim.target.restartInterruptedSyscalls()
      try victim.target.wake()
    }
    if !one.isInterrupted { try victim.send("") }
    let fields = try victim.line().split(separator: " ").map(String.init)
    let expected = one.isInterrupted ? ["-1", "\(EINTR)"] : ["1", "0"]
    #expect(fields[0] == one.kind)
    #expect(Array(fields[1...2]) == expected)
    #expect(fields[3] == "1", "the handler ran \(fields[3]) times")
  }

  @Test(
    "A signal without a handler doesn't interrupt the call of a sleeping process",
    arguments: Nightly.one(of: Victim.Parking.available))
  func ignored(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "timeouts", "signal", "3000", "epoll_wait", parking: parking)
    try victim.waitUntilBlocked()
    let service = HibernationService()
    let path = try victim.sleep(service)
    // These signals are ignored unless a handler is set.
    kill(victim.process.pid, SIGCHLD)
    kill(victim.process.pid, SIGWINCH)
    try victim.wake(service, from: path)
    #expect(try victim.line().hasPrefix("epoll_wait 0 0 0 "))
  }
}
