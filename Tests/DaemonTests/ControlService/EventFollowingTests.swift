import Control
import Lifecycle
import Testing

@testable import Daemon

@Suite("Clients that follow events") struct EventFollowingTests {
  private final class Clients {
    var unread: [ClientID: Int] = [:]
    var sent: [(response: ControlResponse, client: ClientID)] = []
    var whenSent: (ClientID) -> Void = { _ in }

    func events(_ client: ClientID) -> [String?] {
      sent.filter { $0.client == client }.map(\.response.event?.to)
    }
  }

  private let world: AdapterWorld
  private let clients = Clients()
  private let following: EventFollowing
  private let client = ClientID(number: 1)

  init() throws {
    world = try AdapterWorld()
    world.driver.connect([world.chronicle])
    try world.add("web")
    try world.add("db")
    following = EventFollowing(world.chronicle) { [clients] in
      clients.unread[$0]
    } send: { [clients] in
      clients.sent.append(($0, $1))
      clients.whenSent($1)
    }
    clients.unread[client] = 0
  }

  /// Puts a worker into a state.
  private func happen(_ verb: Request.Verb, _ worker: String = "web") {
    world.driver.request(verb, WorkerID(worker)) { _ in }
  }

  @Test("A client that follows events gets each event with the number of its request")
  func events() throws {
    following.follow(client, 7, worker: "web")
    happen(.foreground)
    happen(.foreground, "db")
    happen(.background)
    // One worker is in the foreground, so the other one was moved to the background.
    #expect(clients.events(client).last == "background")
    #expect(clients.sent.allSatisfy { $0.response.event?.worker == "web" })
    #expect(clients.sent.allSatisfy { $0.response.id == 7 && $0.response.result == .event })
    #expect(clients.sent.first?.response.event?.kind == "state")
    let count = clients.sent.count
    following.didReadAll(client)
    #expect(clients.sent.count == count, "none was lost")
  }

  @Test("A client that doesn't read gets the number of lost events once, before the next event")
  func lost() throws {
    following.follow(client, 7, worker: nil)
    clients.unread[client] = EventFollowing.maxUnread
    happen(.foreground)
    clients.unread[client] = EventFollowing.maxUnread + 1
    happen(.background)
    happen(.foreground)
    #expect(clients.events(client) == ["foreground"])
    clients.unread[client] = 0
    following.didReadAll(client)
    following.didReadAll(client)
    happen(.background)
    #expect(clients.sent.map(\.response.event?.lost) == [nil, 2, nil])
    #expect(clients.sent.map(\.response.id) == [7, 7, 7])
    #expect(clients.sent[1].response.text.hasPrefix("2 events were lost: the reader"))
    #expect(clients.events(client).last == "background")
  }

  @Test("A client that leaves while it gets an event gets no further one, the others get each one")
  func left() {
    let other = ClientID(number: 2)
    clients.unread[other] = 0
    clients.whenSent = { [clients, client, following] in
      guard $0 == client else { return }
      clients.unread[client] = nil
      following.forget(client)
    }
    following.follow(client, 7, worker: nil)
    following.follow(client, 8, worker: nil)
    following.follow(other, 9, worker: nil)
    happen(.foreground)
    happen(.background)
    #expect(clients.events(client) == ["foreground"])
    #expect(clients.events(other) == ["foreground", "background"])
  }

  @Test func `A client that disconnects gets no more events`() {
    let other = ClientID(number: 2)
    clients.unread[other] = 0
    following.follow(client, 7, worker: nil)
    following.follow(other, 8, worker: nil)
    following.follow(client, 9, worker: "web")
    following.forget(client)
    happen(.foreground)
    #expect(clients.events(client).isEmpty && clients.events(other) == ["foreground"])
    clients.unread[other] = nil
    happen(.background)
    #expect(!world.chronicle.isFollowed && clients.events(other) == ["foreground"])
    following.follow(client, 10, worker: nil)
    #expect(world.chronicle.isFollowed)
    following.forget(client)
    #expect(!world.chronicle.isFollowed, "nothing of it is kept, also if no event comes")
  }
}
