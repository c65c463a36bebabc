import Policy
import Testing

@testable import Daemon

@Suite("Clients of the control socket") struct ClientQuotaTests {
  private static func at(_ seconds: Int64) -> Instant { .zero + .seconds(1000 + seconds) }

  private static func small() -> ClientQuota {
    var quota = ClientQuota()
    quota.maxClients = 4
    quota.maxOfUser = 3
    return quota
  }

  @Test func `A full socket closes the oldest connection that has sent no whole request`() {
    var quota = Self.small()
    let first = (1...3).map { quota.admit(Int32($0), user: 7, at: Self.at(0)) }
    #expect(first == [.admitted, .admitted, .admitted])
    quota.heard(1, isPartial: false, completed: true, at: Self.at(0))
    let later = (4...5).map { quota.admit(Int32($0), user: 7, at: Self.at(1)) }
    #expect(later == [.insteadOf(2), .insteadOf(3)])
  }

  @Test func `The connections of one user don't shut out another user`() {
    var quota = Self.small()
    for id in 1...3 {
      _ = quota.admit(Int32(id), user: 7, at: Self.at(0))
      quota.heard(Int32(id), isPartial: false, completed: true, at: Self.at(0))
    }
    let sameUser = quota.admit(4, user: 7, at: Self.at(0))
    #expect(sameUser == .refused)
    let other = quota.admit(5, user: 0, at: Self.at(0))
    #expect(other == .admitted)
    #expect(!quota.isFull)
    quota.heard(5, isPartial: false, completed: true, at: Self.at(0))
    #expect(quota.isFull)
    quota.remove(1)
    #expect(!quota.isFull)
  }

  @Test func `A request may take 30 s to arrive, however slowly, and an idle client may stay`() {
    var quota = ClientQuota()
    _ = quota.admit(1, user: 7, at: Self.at(0))
    _ = quota.admit(2, user: 7, at: Self.at(0))
    _ = quota.admit(3, user: 7, at: Self.at(0))
    quota.heard(2, isPartial: false, completed: true, at: Self.at(1))
    quota.heard(3, isPartial: false, completed: true, at: Self.at(1))
    quota.heard(3, isPartial: true, completed: false, at: Self.at(10))
    quota.heard(3, isPartial: true, completed: false, at: Self.at(39))
    #expect(quota.overdue(at: Self.at(29)).isEmpty)
    #expect(quota.overdue(at: Self.at(30)) == [1])
    #expect(quota.overdue(at: Self.at(40)) == [1, 3])
    #expect(quota.overdue(at: Self.at(4000)) == [1, 3])
  }
}

@Suite("Measuring workers") struct MeasuringStateTests {
  private static func measurement(_ megabytes: Int64, took: Duration) -> Measurement {
    Measurement(footprint: .megabytes(megabytes), at: .zero, took: took)
  }

  @Test func `A caller during a measurement gets the figure of the next one`() {
    var state = MeasuringState()
    var figures: [ByteCount?] = []
    let record: MeasuringState.Completion = { figures.append($0?.footprint) }
    let begins = state.ask(record)
    #expect(begins)
    state.begin(1, at: .zero)
    let beginsAgain = state.ask(record)
    #expect(!beginsAgain)
    let first = state.finish(Self.measurement(1, took: .zero), workers: 1, at: .zero)
    for completion in first.completions { completion(first.1) }
    #expect(figures == [.megabytes(1)])
    #expect(first.more)
    state.begin(2, at: .zero)
    let second = state.finish(Self.measurement(2, took: .zero), workers: 1, at: .zero)
    for completion in second.completions { completion(second.1) }
    #expect(figures == [.megabytes(1), .megabytes(2)])
    #expect(!second.more)
  }

  @Test func `A measurement that began before the memory was moved gives no footprint`() {
    var state = MeasuringState()
    _ = state.ask { _ in }
    state.begin(3, at: .zero)
    state.didMoveMemory()
    let end = state.finish(Self.measurement(50, took: .zero), workers: 1, at: .zero)
    #expect(end.1 == nil)
    #expect(state.last == nil)
  }

  @Test func `Regular measurements of all workers together use at most a tenth of one processor`() {
    var state = MeasuringState()
    _ = state.ask { _ in }
    state.begin(4, at: .zero)
    let now = Instant.zero + .seconds(100)
    _ = state.finish(Self.measurement(1, took: .milliseconds(500)), workers: 4, at: now)
    #expect(!state.isDue(at: now + .milliseconds(19_999)))
    #expect(state.isDue(at: now + .seconds(20)))
  }
}
