import Policy
import Testing

@testable import Daemon

@Suite("Clients of the control socket") struct ClientQuotaTests {
  private static func at(_ seconds: Int64) -> Instant { .zero + .seconds(1000 + seconds) }

  private static func id(_ number: Int) -> ClientID { ClientID(number: UInt64(number)) }

  private static func small() -> ClientQuota {
    var quota = ClientQuota()
    quota.maxClients = 4
    quota.maxOfUser = 3
    return quota
  }

  @Test func `A full socket closes the oldest connection that has sent no whole request`() {
    var quota = Self.small()
    let first = (1...3).map { quota.admit(Self.id($0), user: 7, at: Self.at(0)) }
    #expect(first == [.admitted, .admitted, .admitted])
    quota.heard(Self.id(1), isPartial: false, completed: true, at: Self.at(0))
    let later = (4...5).map { quota.admit(Self.id($0), user: 7, at: Self.at(1)) }
    #expect(later == [.insteadOf(Self.id(2)), .insteadOf(Self.id(3))])
  }

  @Test func `The connections of one user don't shut out another user`() {
    var quota = Self.small()
    for id in 1...3 {
      _ = quota.admit(Self.id(id), user: 7, at: Self.at(0))
      quota.heard(Self.id(id), isPartial: false, completed: true, at: Self.at(0))
    }
    let sameUser = quota.admit(Self.id(4), user: 7, at: Self.at(0))
    #expect(sameUser == .refused)
    let other = quota.admit(Self.id(5), user: 0, at: Self.at(0))
    #expect(other == .admitted)
    #expect(!quota.isFull)
    quota.heard(Self.id(5), isPartial: false, completed: true, at: Self.at(0))
    #expect(quota.isFull)
    quota.remove(Self.id(1))
    #expect(!quota.isFull)
  }

  @Test func `A request may take 30 s to arrive, however slowly, and an idle client may stay`() {
    var quota = ClientQuota()
    _ = quota.admit(Self.id(1), user: 7, at: Self.at(0))
    _ = quota.admit(Self.id(2), user: 7, at: Self.at(0))
    _ = quota.admit(Self.id(3), user: 7, at: Self.at(0))
    quota.heard(Self.id(2), isPartial: false, completed: true, at: Self.at(1))
    quota.heard(Self.id(3), isPartial: false, completed: true, at: Self.at(1))
    quota.heard(Self.id(3), isPartial: true, completed: false, at: Self.at(10))
    quota.heard(Self.id(3), isPartial: true, completed: false, at: Self.at(39))
    #expect(quota.overdue(at: Self.at(29)).isEmpty)
    #expect(quota.overdue(at: Self.at(30)) == [Self.id(1)])
    #expect(Set(quota.overdue(at: Self.at(40))) == [Self.id(1), Self.id(3)])
    #expect(Set(quota.overdue(at: Self.at(4000))) == [Self.id(1), Self.id(3)])
  }
}
