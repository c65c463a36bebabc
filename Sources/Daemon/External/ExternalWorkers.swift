import Lifecycle
import Linux
import Policy

/// The components for workers of other supervisors, and how they are connected.
final class ExternalWorkers {
  private let driver: EngineDriver
  private let parts: ExternalsOfDaemon.Parts
  private let bootID: String

  init(_ driver: EngineDriver, bootID: String, _ parts: ExternalsOfDaemon.Parts) {
    self.driver = driver
    self.parts = parts
    self.bootID = bootID
  }

  /// By request, and what both ways share.
  private(set) lazy var adoption: ExternalAdoption = {
    var parts = parts
    parts.wasReleased = { [unowned self] in rules.wasReleased($0, from: $1) }
    return ExternalAdoption(driver, parts.workers, host: ExternalsOfDaemon(parts))
  }()

  /// By rule.
  private(set) lazy var rules = RuleAdoption(
    timers: parts.services.loop, workers: parts.workers,
    released: ReleasedProcesses(
      path: parts.state.path + "/released", bootID: bootID, files: parts.services.stateFiles),
    host: RulesOfDaemon(
      .init(
        services: parts.services, driver: driver, workers: parts.workers, phase: parts.phase,
        externals: adoption, recordWriter: parts.recordWriter)))
}
