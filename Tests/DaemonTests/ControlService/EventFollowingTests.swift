import Control
import Testing

@testable import Daemon

@Suite("Clients that follow events") struct EventFollowingTests {
  private final class Source: EventSource {
    private var followers: [(number: Int, worker: String?, receive: (EventRecord) -> Bool)] = []
    private var last = 0
    var count: Int { followers.count }

    func follow(worker: String?, receive: @escaping (EventRecord) -> Bool) -> () -> Void {
      last += 1
      let number = last
      followers.append((number, worker, receive))
      return { [weak self] in self?.followers.removeAll { $0.number == number } }
    }

    func happen(_ text: String) {
      let event = EventRecord(time: "2026-11-22T12:00:00Z", kind: "state", text: text)
      followers.removeAll { !$0.receive(event) }
    }

    var workers: [String?] { followers.map(\.worker) }
  }

  private final class Recipients: EventRecipients {
    var unread: [ClientID: Int] = [:]
    private(set) var sent: [(response: ControlResponse, client: ClientID)] = []

    func unreadBytes(of client: ClientID) -> Int? { unread[client] }
    func send(_ response: ControlResponse, to client: ClientID) { sent.append((response, client)) }

    func texts(_ client: ClientID) -> [String] {
      sent.filter { $0.client == client }.map(\.response.text)
    }
  }

  private let source = Source()
  private let recipients = Recipients()
  private let following: EventFollowing
  private let client = ClientID(number: 1)

  init() {
    following = EventFollowing(source, recipients)
    recipients.unread[client] = 0
  }

  @Test("A client that follows events gets each event with the number of its request")
  func events() throws {
    following.follow(client, 7, worker: "web")
    #expect(source.workers == ["web"])
    source.happen("one")
    source.happen("two")
    #expect(recipients.texts(client) == ["one", "two"])
    #expect(recipients.sent.allSatisfy { $0.response.id == 7 && $0.response.result == .event })
    #expect(recipients.sent.first?.response.event?.kind == "state")
    following.hasReadEverything(client)
    #expect(recipients.sent.count == 2, "none was lost")
  }

  @Test("A client that doesn't read gets the number of lost events once, before the next event")
  func lost() throws {
    following.follow(client, 7, worker: nil)
    recipients.unread[client] = EventFollowing.maxUnread
    source.happen("still sent")
    recipients.unread[client] = EventFollowing.maxUnread + 1
    source.happen("lost")
    source.happen("lost, too")
    #expect(recipients.texts(client) == ["still sent"])
    recipients.unread[client] = 0
    following.hasReadEverything(client)
    following.hasReadEverything(client)
    source.happen("after that")
    #expect(recipients.sent.map(\.response.event?.lost) == [nil, 2, nil])
    #expect(recipients.sent.map(\.response.id) == [7, 7, 7])
    #expect(recipients.texts(client)[1].hasPrefix("2 events were lost: the reader"))
  }

  @Test("A client that disconnects gets no more events")
  func left() {
    let other = ClientID(number: 2)
    recipients.unread[other] = 0
    following.follow(client, 7, worker: nil)
    following.follow(other, 8, worker: nil)
    following.follow(client, 9, worker: "web")
    following.forget(client)
    #expect(source.count == 1, "the source keeps nothing of it, also if no event comes")
    source.happen("one")
    #expect(recipients.texts(client).isEmpty && recipients.texts(other) == ["one"])
    #expect(source.count == 1)
    recipients.unread[other] = nil
    source.happen("two")
    #expect(source.count == 0 && recipients.texts(other) == ["one"])
  }
}
