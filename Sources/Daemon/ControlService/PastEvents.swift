import Control
import Lifecycle
import Policy

// The verbs about the past: `events` and `jetsam`.
extension ControlService {
  /// Answers when the journal can be read. Clients read the past from its files, so that the daemon
  /// keeps none of it in memory.
  func locateJournal(_ call: ControlCall) {
    var journal = JournalLocation(directory: nil, reports: "", run: nil, at: 0)
    let saved: @Sendable (Bool) -> Void = loopReturn.callback { _ in
      let text = journal.directory.map { "the journal is in \($0)" } ?? "there is no journal"
      call.answer(.done, text) { $0.journal = journal }
    }
    journal = status.facts.chronicle.save(at: status.facts.clock.now) { saved(true) }
  }

  func showJetsam(_ call: ControlCall) {
    let ids = jetsam.ids
    guard let wanted = call.request.report ?? ids.first else {
      let text =
        status.daemon.driver.state.isTerminatingForMemory
        ? "workers are being terminated for lack of memory; the report follows when that is over"
        : "no worker has been terminated for lack of memory"
      return call.answer(.done, text) { $0.reports = ids }
    }
    jetsam.load(wanted) { record in
      let text =
        record == nil ? "there is no jetsam report \(wanted)" : "jetsam report \(wanted)"
      call.answer(record == nil ? .failed : .done, text) {
        ($0.jetsam, $0.reports) = (record, ids)
      }
    }
  }
}
