import Control
import Testing

@testable import Daemon

/// A `ControlService` over a fake daemon, and what it answers.
final class ControlWorld {
  let host = FakeControlHost()
  let events = FakeEvents()
  let service: ControlService
  let client = ClientID(number: 1)
  private let recipients = NoRecipients()

  final class FakeEvents: EventSource {
    private(set) var workers: [String?] = []
    func follow(worker: String?, receive: @escaping (EventRecord) -> Bool) -> () -> Void {
      workers.append(worker)
      return {}
    }
  }

  private final class NoRecipients: EventRecipients {
    func unreadBytes(of client: ClientID) -> Int? { nil }
    func send(_ response: ControlResponse, to client: ClientID) {}
  }

  /// The answers to one request.
  final class Heard { var responses: [ControlResponse] = [] }

  init() {
    service = ControlService(
      driver: host.driver, host: host, following: EventFollowing(events, recipients),
      status: StatusReporter(host.driver, host, clock: host.timers), log: DaemonLog())
  }

  func ask(_ request: ControlRequest) -> Heard {
    let heard = Heard()
    service.handle(request, from: client) { heard.responses.append($0) }
    return heard
  }

  func ask(_ verb: ControlRequest.Verb, _ worker: String? = nil) -> Heard {
    ask(ControlRequest(id: 7, verb: verb, worker: worker))
  }

  /// Exactly one answer has come, to this request, and nothing is left that could bring another.
  func only(_ heard: Heard) throws -> ControlResponse {
    #expect(heard.responses.count == 1 && host.isQuiet)
    let response = try #require(heard.responses.first)
    #expect(response.id == 7)
    return response
  }
}
