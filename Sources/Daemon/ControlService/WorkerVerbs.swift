import Control
import Lifecycle
import Policy

/// The verbs about one worker that the engine answers. It belongs to the event loop's thread.
final class WorkerVerbs {
  private let externals: ExternalAdoption
  let startConfirmation: StartConfirmation
  private let memory: any WorkerMemory
  /// The workers whose hibernation waits for a reading of the disk, with later requests about them.
  private var awaitingDisk: [WorkerID: [() -> Void]] = [:]
  private var diskWasAsked = false

  init(
    externals: ExternalAdoption, startConfirmation: StartConfirmation, memory: any WorkerMemory
  ) {
    self.externals = externals
    self.startConfirmation = startConfirmation
    self.memory = memory
  }

  private var ends: WorkerEnds { externals.ends }

  /// - Parameter again: carries the request out after a wait.
  func ask(
    _ verb: Request.Verb, _ id: WorkerID, for call: ControlCall, again: @escaping () -> Void
  ) {
    if waitsForDisk(verb, id, again) { return }
    let phase = externals.declared.phase
    if phase.isLeaving || phase.isEnding && verb != .stop && verb != .terminate {
      return call.answerEnding()
    }
    if let refusal = externals.foreignRefusal(verb, id) { return call.answer(.refused, refusal) }
    if let problem = call.problemOfTime { return call.answer(.badRequest, problem) }
    // A client waits for these verbs.
    if verb == .wake || verb == .foreground || verb == .stop { memory.prioritize(id.name) }
    ends.supervision.operatorRequested(verb, id)
    guard verb == .start || verb == .restart else {
      return ends.requests.request(verb, id, lasting: call.lasting) { call.answer($0) }
    }
    // The worker is started with its dependencies. The request is answered when it is known whether
    // the worker keeps running.
    ends.supervision.starter.start(id, verb) { [startConfirmation] in
      startConfirmation.watch(id, $0) { call.answer($0) }
    }
  }

  /// Whether a request waits for a reading of the disk. Before a suspended worker is hibernated by
  /// request, the disk is read: an operator that has made room needn't wait for the next regular
  /// reading. Further requests about the worker wait too, and keep their order.
  private func waitsForDisk(
    _ verb: Request.Verb, _ id: WorkerID, _ again: @escaping () -> Void
  ) -> Bool {
    if awaitingDisk[id] != nil {
      awaitingDisk[id]?.append(again)
      return true
    }
    guard verb == .hibernate, ends.driver.state.state(of: id) == .suspended, !diskWasAsked
    else { return false }
    awaitingDisk[id] = [again]
    ends.imageDisk.sendReading { [weak self] in
      guard let self else { return }
      let waiting = awaitingDisk.removeValue(forKey: id) ?? []
      diskWasAsked = true
      for each in waiting { each() }
      diskWasAsked = false
    }
    return true
  }
}
