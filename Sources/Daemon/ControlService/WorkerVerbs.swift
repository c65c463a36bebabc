import Control
import Lifecycle
import Policy

/// The verbs about one worker that the engine answers. Belongs to the loop's thread.
final class WorkerVerbs {
  private let driver: EngineDriver
  private let ending: DaemonEnd
  private let requests: WorkerRequests
  private let starter: DependencyStarter
  private let firstMoments: FirstMoments
  private let supervision: WorkerSupervision
  private let externals: ExternalAdoption
  private let memory: any WorkerMemory
  private let imageDisk: ImageDiskMonitor
  /// Workers whose hibernation waits for a look at the disk; later requests about them.
  private var awaitingDisk: [WorkerID: [() -> Void]] = [:]
  private var diskWasAsked = false

  init(
    driver: EngineDriver, ending: DaemonEnd, requests: WorkerRequests, starter: DependencyStarter,
    firstMoments: FirstMoments, supervision: WorkerSupervision, externals: ExternalAdoption,
    memory: any WorkerMemory, imageDisk: ImageDiskMonitor
  ) {
    self.driver = driver
    self.ending = ending
    self.requests = requests
    self.starter = starter
    self.firstMoments = firstMoments
    self.supervision = supervision
    self.externals = externals
    self.memory = memory
    self.imageDisk = imageDisk
  }

  /// - Parameter again: carries the request out when it has waited for something.
  func ask(
    _ verb: Request.Verb, _ id: WorkerID, for call: ControlCall, again: @escaping () -> Void
  ) {
    if waitsForDisk(verb, id, again) { return }
    let phase = ending.phase
    if phase.isLeaving || phase.isEnding && verb != .stop && verb != .terminate {
      return call.answerEnding()
    }
    if let refusal = externals.foreignRefusal(verb, id) { return call.answer(.refused, refusal) }
    if let problem = call.problemOfTime { return call.answer(.badRequest, problem) }
    // A client waits for these.
    if verb == .wake || verb == .foreground || verb == .stop { memory.prioritize(id.name) }
    supervision.personAsks(verb, id)
    guard verb == .start || verb == .restart else {
      return requests.request(verb, id, lasting: call.lasting) { call.answer($0) }
    }
    // With those that it needs; answered when it is known whether it stays.
    starter.start(id, verb) { [firstMoments] in
      firstMoments.watch(id, $0) { call.answer($0) }
    }
  }

  /// If you have made room on the disk, you needn't wait for the next regular look: before a suspended worker
  /// is hibernated by request, the disk is looked at. Further requests about the worker wait for that, and keep
  /// their order.
  private func waitsForDisk(
    _ verb: Request.Verb, _ id: WorkerID, _ again: @escaping () -> Void
  ) -> Bool {
    if awaitingDisk[id] != nil {
      awaitingDisk[id]?.append(again)
      return true
    }
    guard verb == .hibernate, driver.state.state(of: id) == .suspended, !diskWasAsked
    else { return false }
    awaitingDisk[id] = [again]
    imageDisk.sendReading { [weak self] in
      guard let self else { return }
      let waiting = awaitingDisk.removeValue(forKey: id) ?? []
      diskWasAsked = true
      for each in waiting { each() }
      diskWasAsked = false
    }
    return true
  }
}
