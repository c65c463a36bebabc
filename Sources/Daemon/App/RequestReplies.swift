import Lifecycle
import Policy

/// The requests that wait for the engine's answers. Each gets one answer.
///
/// A client that has its answer can rely on a later daemon to know what has happened: an answer waits until the
/// workers' records are on disk, for at most a second if the disk doesn't answer. Belongs to the loop's thread.
final class RequestReplies {
  private let records: any WorkerRecords
  private let timers: any Timers
  private var waiting: [Request.ID: (Answer) -> Void] = [:]
  private var lastRequest: Request.ID = 0
  /// Sent, in this order, when the records are on disk.
  private var undelivered: [(number: UInt64, send: () -> Void)] = []
  private var lastDelivery: UInt64 = 0

  static let maxWait = Duration.seconds(1)

  init(_ records: any WorkerRecords, timers: any Timers) {
    self.records = records
    self.timers = timers
  }

  /// The number of a new request, whose answer is passed to `answer`.
  func await(_ answer: @escaping (Answer) -> Void) -> Request.ID {
    lastRequest += 1
    waiting[lastRequest] = answer
    return lastRequest
  }

  /// An answer to a request that has had one is dropped.
  func deliver(_ answer: Answer, to request: Request.ID) {
    guard let hear = waiting.removeValue(forKey: request) else { return }
    if records.isSaved, undelivered.isEmpty { return hear(answer) }
    lastDelivery += 1
    let number = lastDelivery
    undelivered.append((number, { hear(answer) }))
    records.whenSaved { [weak self] in self?.deliver(upTo: number) }
    timers.after(Self.maxWait) { [weak self] in self?.deliver(upTo: number) }
  }

  /// The daemon ends, and waits for the disk itself before its process does.
  func deliverAll() { deliver(upTo: lastDelivery) }

  private func deliver(upTo number: UInt64) {
    while let first = undelivered.first, first.number <= number {
      undelivered.removeFirst()
      first.send()
    }
  }
}
