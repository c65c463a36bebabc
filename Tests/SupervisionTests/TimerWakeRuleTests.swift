import Linux
import Testing

@testable import Supervision

@Suite("Which of its own timers a worker is woken for") struct TimerWakeTests {
  private func due(_ remaining: Int64, of whole: Int64?, _ source: DueTime.Source = .timeout)
    -> DueTime
  {
    DueTime(source: source, remaining: .seconds(remaining), whole: whole.map { .seconds($0) })
  }

  @Test("A worker without clients is woken for timers from 15 s on, unless it is woken for none")
  func ofJobs() {
    #expect(TimerWake.shortest(.seconds(60), hasClients: true) == .seconds(60))
    #expect(TimerWake.shortest(.seconds(60), hasClients: false) == .seconds(15))
    #expect(TimerWake.shortest(.seconds(2), hasClients: false) == .seconds(2))
    #expect(TimerWake.shortest(nil, hasClients: false) == nil)
  }

  @Test("A timer wakes a worker only if its whole duration is long enough, however soon it is due")
  func whole() {
    let cron = due(3, of: 60, .timer)
    let chatter = due(1, of: 1)
    let wake = TimerWake.first(of: [chatter, cron], shortest: .seconds(60))
    #expect(wake == TimerWake(delay: .seconds(3), reason: "its own timer"))
    #expect(TimerWake.first(of: [chatter], shortest: .seconds(60)) == nil)
    #expect(TimerWake.first(of: [], shortest: .seconds(60)) == nil)
  }

  @Test(
    "A timer of which only the end is known wakes a worker, but not more often than the policy says"
  )
  func ends() {
    let end = due(5, of: nil)
    #expect(TimerWake.first(of: [end], shortest: .seconds(60))?.delay == .seconds(5))
    #expect(
      TimerWake.first(of: [end], shortest: .seconds(60), sinceLast: .seconds(20))?.delay
        == .seconds(40))
    #expect(
      TimerWake.first(of: [end], shortest: .seconds(60), sinceLast: .seconds(90))?.delay
        == .seconds(5))
    #expect(TimerWake.first(of: [due(1, of: nil)], shortest: .seconds(60)) == nil)
  }

  @Test func `The earliest of several timers wakes the worker`() {
    let times = [due(300, of: 300), due(90, of: 3600), due(70, of: nil)]
    #expect(TimerWake.first(of: times, shortest: .seconds(60))?.delay == .seconds(70))
  }
}
