import Policy
import Testing

@testable import Daemon

@Suite("The wait for a worker's record") struct RecordWaitTests {
  /// A disk that answers when a test says so.
  private final class Disk {
    var answers: [(Bool) -> Void] = []
    var outcomes: [String?] = []
  }

  private let timers = FakeTimers()
  private let disk = Disk()
  private let wait: RecordWait

  init() { wait = RecordWait(timers) }

  private func begin() {
    wait.begin { [disk] in
      disk.answers.append($0)
    } then: { [disk] in
      disk.outcomes.append($0)
    }
  }

  private var isOver: Bool { timers.pending.isEmpty }

  @Test("The wait ends when the disk has the record")
  func recorded() {
    begin()
    timers.advance(by: .seconds(4))
    #expect(disk.outcomes.isEmpty)
    disk.answers[0](true)
    disk.answers[0](true)
    #expect(disk.outcomes == [nil] && isOver)
  }

  @Test("A record that couldn't be written is an obstacle")
  func missing() {
    begin()
    disk.answers[0](false)
    #expect(disk.outcomes.count == 1 && isOver)
    #expect(disk.outcomes[0]?.hasPrefix("its record can't be written: ") == true)
  }

  @Test("So is a disk that doesn't answer within 5 s, and a later answer changes nothing")
  func overdue() {
    begin()
    timers.advance(by: .seconds(5))
    #expect(disk.outcomes.count == 1 && isOver)
    #expect(disk.outcomes[0]?.hasPrefix("its record isn't on the disk after 5 s: ") == true)
    disk.answers[0](true)
    #expect(disk.outcomes.count == 1)
  }

  @Test("A cancelled wait has no outcome, and another begin cancels the one before")
  func cancelled() {
    begin()
    wait.cancel()
    wait.cancel()
    disk.answers[0](true)
    timers.advance(by: .seconds(60))
    #expect(disk.outcomes.isEmpty)
    begin()
    begin()
    disk.answers[1](true)
    #expect(disk.outcomes.isEmpty)
    disk.answers[2](true)
    #expect(disk.outcomes == [nil] && isOver)
  }

  @Test("A wait that is freed leaves no timer")
  func freed() {
    do {
      let other = RecordWait(timers)
      other.begin { _ in
      } then: { [disk] in
        disk.outcomes.append($0)
      }
      #expect(!isOver)
    }
    timers.advance(by: .seconds(60))
    #expect(isOver && disk.outcomes.isEmpty)
  }
}
