import Linux

/// The reason why a worker wasn't hibernated or resumed, with the phase that failed and the state
/// of the worker afterwards.
public struct HibernationError: Error, Sendable, CustomStringConvertible {
  /// The step that failed. The raw value is part of the error's text.
  public enum Phase: String, Sendable {
    case checking, stopping, seizing, scanning, capturing, committing, evicting, resting
    case reading
    case writingBack = "writing back"
    case waking
    case filling = "filling in the background"
  }

  /// The state of the worker after the failure.
  public enum Aftermath: Sendable {
    /// Everything is as it was before; trying again may succeed.
    case intact
    /// The worker is as it was, and trying again is useless: workers of this kind can't be
    /// hibernated.
    case ineligible
    /// Its processes have ended.
    case vanished
    /// Its memory can't be verified. It must not run again.
    case unverifiable
  }

  public var phase: Phase
  /// The text for the operator: what failed, and why.
  public var reason: String
  public var aftermath: Aftermath
  /// True if none of its threads waits in a system call: it has to run until one does.
  var isBusy = false

  public init(_ phase: Phase, _ reason: String, aftermath: Aftermath = .intact) {
    self.phase = phase
    self.reason = reason
    self.aftermath = aftermath
  }

  public var description: String {
    aftermath == .ineligible ? reason : "\(reason) (while \(phase.rawValue))"
  }

  /// True if the cause says nothing about the worker's memory or its image, and may be absent at
  /// the next attempt.
  static func isTransient(_ cause: any Error) -> Bool {
    switch cause {
    case let error as ImageError: error.isTransient
    case let error as CompressionError: error.isShortage
    case let error as SystemCallError: error.isTransient
    case CgroupError.failed(let error): error.isTransient
    case TraceError.call(let error): error.isTransient
    case ProcessTreeError.failed(let error): error.isTransient
    default: false
    }
  }

  static func from(_ error: any Error, in phase: Phase) -> HibernationError {
    switch error {
    case let error as HibernationError: error
    case TraceError.vanished(let pid):
      HibernationError(phase, "process \(pid) has ended", aftermath: .vanished)
    case let error as SystemCallError where error.meansVanished:
      HibernationError(phase, error.description, aftermath: .vanished)
    default: HibernationError(phase, "\(error)")
    }
  }
}
