import Control
import Lifecycle

/// A request under way, and the way of its answer.
struct ControlCall {
  let request: ControlRequest
  /// Called once.
  let respond: (ControlResponse) -> Void

  func answer(_ result: ControlResponse.Result, _ text: String) {
    respond(ControlResponse(id: request.id, result: result, text: text))
  }

  func answer(_ answer: Answer) { self.answer(.init(answer.code), answer.text) }
}
