import Control
import Lifecycle
import Policy

/// A request that is under way, and the function that answers it.
struct ControlCall {
  let request: ControlRequest
  /// Answers the request. It is called once.
  let respond: (ControlResponse) -> Void

  /// - Parameter complete: adds to the answer what it has in addition to the text.
  func answer(
    _ result: ControlResponse.Result, _ text: String,
    complete: (inout ControlResponse) -> Void = { _ in }
  ) {
    var response = ControlResponse(id: request.id, result: result, text: text)
    complete(&response)
    respond(response)
  }

  func answerUnknown(_ name: String) {
    answer(.unknownWorker, "there is no worker named \(name)")
  }

  func answerEnding() { answer(.refused, "the daemon is ending") }

  /// Answers with the engine's answer. Its codes are results, too.
  func answer(_ answer: Answer) {
    self.answer(ControlResponse.Result(rawValue: answer.code.rawValue) ?? .failed, answer.text)
  }

  /// How long a `protect` is meant to last; nil: until the daemon ends.
  var lasting: Duration? {
    guard request.verb == .protect, problemOfTime == nil else { return nil }
    return request.seconds.map { .seconds($0) }
  }

  /// What is wrong with that time; nil if nothing is.
  var problemOfTime: String? {
    guard request.verb == .protect, let seconds = request.seconds else { return nil }
    if seconds > 0, seconds <= Duration.longestProtection.seconds { return nil }
    return "the time of `protect` must be more than 0 and at most 30 d"
  }
}
