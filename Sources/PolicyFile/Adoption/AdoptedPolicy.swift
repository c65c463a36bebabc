import Policy

/// The policy that a request chooses for the worker that it adopts.
public struct AdoptedPolicy: Hashable, Sendable {
  /// A policy's name or path; nil: the machine's.
  public var name: String?
  /// Values that replace those of that policy, each `KEY=VALUE`.
  public var settings: [String]
  /// Decisions about the worker are logged, not applied.
  public var isShadow: Bool

  public init(name: String? = nil, settings: [String] = [], isShadow: Bool = false) {
    self.name = name
    self.settings = settings
    self.isShadow = isShadow
  }

  /// The named policy. Reads files, so not on the event loop's thread; nil: no policy is named.
  public func load(from library: PolicyLibrary) throws(SettingError) -> LifecyclePolicy? {
    guard let name else { return nil }
    let result = library.load(name)
    if let policy = result.value { return policy }
    let first = result.errors.first
    throw SettingError(
      "policy=\(name)", first?.message ?? "can't be read", suggestion: first?.suggestion)
  }

  /// The worker's policy: what `load` found, with these settings.
  ///
  /// - Parameter machine: decides what is common to all workers, whatever policy is named.
  public func resolved(
    _ named: LifecyclePolicy?, over machine: LifecyclePolicy
  ) throws(SettingError) -> LifecyclePolicy {
    let base = named?.ofOneWorker(over: machine) ?? machine
    var policy = try PolicySettings(settings, scope: .worker).applied(to: base)
    if isShadow { policy.mode = .shadow }
    return policy
  }
}

extension LifecyclePolicy {
  /// The same policy for one worker: what applies to all workers together is the machine's.
  func ofOneWorker(over machine: LifecyclePolicy) -> LifecyclePolicy {
    var policy = self
    PolicyKeys.all.copyThoseOfMachine(from: machine, to: &policy)
    return policy
  }
}
