import Linux
import Policy
import Testing

@testable import Daemon

@Suite("The wake timer of a sleeping worker") struct WakeTimerTests {
  private final class Rings { var all: [String] = [] }

  private let timers = FakeTimers()
  private let rings = Rings()
  private let timer: WakeTimer

  init() {
    timer = WakeTimer(timers) { [rings] in rings.all.append($0) }
  }

  /// A timer that repeats.
  private func repeating(_ interval: Duration, in remaining: Duration) -> DueTime {
    DueTime(source: .timer, remaining: remaining, whole: interval)
  }

  @Test("A sleeping worker's wake timer fires once, when the first timer that counts is due")
  func ringsOnce() {
    let start = timers.now
    timer.set(
      [
        repeating(.seconds(300), in: .seconds(90)), repeating(.seconds(60), in: .seconds(40)),
        repeating(.milliseconds(100), in: .milliseconds(20)),
      ], shortest: .seconds(30))
    #expect(timer.due == start + .seconds(40))
    timers.advance(by: .seconds(39))
    #expect(rings.all.isEmpty)
    timers.advance(by: .seconds(1))
    #expect(rings.all == ["its own timer"] && timer.due == nil)
    timers.advance(by: .seconds(3600))
    #expect(rings.all.count == 1)
  }

  @Test func `No wake timer is set if the policy wakes for no timer, or none is long enough`() {
    timer.set([repeating(.seconds(60), in: .seconds(40))], shortest: nil)
    #expect(timer.due == nil)
    timer.set([repeating(.seconds(1), in: .seconds(1))], shortest: .seconds(30))
    #expect(timer.due == nil && timers.pending.isEmpty)
  }

  @Test func `A wake timer whose time has passed fires in the next turn, and not before`() {
    timer.set(at: timers.now + .seconds(-5), "a time of its own, set before")
    #expect(rings.all.isEmpty && timers.pending == [.zero])
    timers.advance(by: .zero)
    #expect(rings.all == ["a time of its own, set before"])
  }

  @Test func `A worker has one wake timer, and another time replaces it`() {
    timer.set([repeating(.seconds(60), in: .seconds(40))], shortest: .seconds(30))
    timer.set([repeating(.seconds(60), in: .seconds(50))], shortest: .seconds(30))
    #expect(timers.pending == [.seconds(50)])
    timer.set(at: timers.now + .seconds(10), "sooner")
    #expect(timers.pending == [.seconds(10)])
    timers.advance(by: .seconds(100))
    #expect(rings.all == ["sooner"])
  }

  @Test("A wake timer is cancelled when a reload has switched it off, and when its worker runs")
  func cancelled() {
    timer.set([repeating(.seconds(60), in: .seconds(40))], shortest: .seconds(30))
    timer.set([repeating(.seconds(60), in: .seconds(40))], shortest: nil)
    #expect(timers.pending.isEmpty)
    timer.set([repeating(.seconds(60), in: .seconds(40))], shortest: .seconds(30))
    timer.cancel()
    timer.cancel()
    #expect(timer.due == nil && timers.pending.isEmpty && rings.all.isEmpty)
  }

  @Test("A time-out of which only the end is known wakes no more often than the policy says")
  func spacing() {
    let timeout = DueTime(source: .timeout, remaining: .seconds(3), whole: nil)
    timer.set([timeout], shortest: .seconds(60))
    timers.advance(by: .seconds(3))
    #expect(rings.all == ["the time-out of a system call"])
    timer.set([timeout], shortest: .seconds(60))
    #expect(timers.pending == [.seconds(60)])
    timers.advance(by: .seconds(20))
    timer.cancel()
    timer.set([timeout], shortest: .seconds(60))
    #expect(timers.pending == [.seconds(40)])
  }
}
