import Control
import Journal

// `dormouse events`: clients that hear of everything that happens.

extension ControlServer {
  /// Bytes of events that may wait for a client. What doesn't fit any more is counted, and told.
  static let maxToldAhead = 64 << 10

  func follow(_ client: Client, _ id: UInt64, worker: String?) {
    client.followedAs = id
    daemon.chronicle.follow(worker: worker) { [weak self, weak client] event in
      guard let self, let client, !client.isClosed else { return false }
      if client.pending.count > Self.maxToldAhead {
        client.lostEvents += 1
      } else {
        tell(client, id, event)
      }
      return true
    }
  }

  private func tell(_ client: Client, _ id: UInt64, _ event: EventRecord) {
    var response = ControlResponse(id: id, result: .event, text: event.text)
    response.event = event
    respond(to: client, response)
  }

  /// It has read everything, and must know what is missing before it is told more.
  func tellLost(_ client: Client) {
    let count = client.lostEvents
    client.lostEvents = 0
    let what = count == 1 ? "1 event was" : "\(count) events were"
    var event = EventRecord(
      time: JournalWriter.wall().text, kind: "lost",
      text: "\(what) lost here, because they were not read in time; the journal has them")
    event.lost = count
    tell(client, client.followedAs, event)
  }
}

extension Daemon {
  /// Answered when the journal can be read: clients read the past from its files, so that the daemon
  /// needs to keep none of it in memory.
  func events(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    let place = chronicle.save(at: EventLoop.now) { [mailbox] in
      mailbox.post { daemon in
        // In the order of the requests: one thread writes for all.
        if !daemon.waitingForJournal.isEmpty { daemon.waitingForJournal.removeFirst()() }
      }
    }
    var response = ControlResponse(
      id: request.id, result: .done,
      text: place.directory.map { "the journal is in \($0)" } ?? "there is no journal")
    response.journal = place
    waitingForJournal.append { respond(response) }
  }
}
