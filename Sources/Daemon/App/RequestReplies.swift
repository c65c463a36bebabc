import Lifecycle

/// The requests that wait for the engine's answers. Each request gets one answer.
///
/// A client that has its answer can rely on it that a later daemon knows the outcome. Therefore an
/// answer waits until the records of the workers are on disk, but at most 1 s if the disk doesn't
/// respond. Belongs to the loop's thread.
final class RequestReplies {
  private let records: any WorkerRecords
  private let timers: any Timers
  private var waiting: [Request.ID: (Answer) -> Void] = [:]
  private var lastRequest: Request.ID = 0
  /// Answers that are sent, in this order, when the records are on disk.
  private var undelivered: [(number: UInt64, send: () -> Void)] = []
  private var lastDelivery: UInt64 = 0

  static let maxWait = Duration.seconds(1)

  init(_ records: any WorkerRecords, timers: any Timers) {
    self.records = records
    self.timers = timers
  }

  /// Returns the number of a new request. Its answer will be passed to `answer`.
  func await(_ answer: @escaping (Answer) -> Void) -> Request.ID {
    lastRequest += 1
    waiting[lastRequest] = answer
    return lastRequest
  }

  /// Passes on the answer to a request. A second answer to the same request is dropped.
  func deliver(_ answer: Answer, to request: Request.ID) {
    guard let respond = waiting.removeValue(forKey: request) else { return }
    if records.isSaved, undelivered.isEmpty { return respond(answer) }
    lastDelivery += 1
    let number = lastDelivery
    undelivered.append((number, { respond(answer) }))
    records.whenSaved { [weak self] in self?.deliver(upTo: number) }
    timers.after(Self.maxWait) { [weak self] in self?.deliver(upTo: number) }
  }

  /// Sends all answers now. The daemon is ending, and waits for the disk itself before its process
  /// ends.
  func deliverAll() { deliver(upTo: lastDelivery) }

  private func deliver(upTo number: UInt64) {
    while let first = undelivered.first, first.number <= number {
      undelivered.removeFirst()
      first.send()
    }
  }
}
