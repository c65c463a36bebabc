import Policy

/// The policy that a request chooses for the worker that it adopts.
public struct AdoptedPolicy: Hashable, Sendable {
  /// A policy's name or path. nil: the machine's policy.
  public var name: String?
  /// Values that replace those of that policy, each as `KEY=VALUE`.
  public var settings: [String]
  /// True if decisions about the worker are only logged.
  public var isShadow: Bool

  public init(name: String? = nil, settings: [String] = [], isShadow: Bool = false) {
    self.name = name
    self.settings = settings
    self.isShadow = isShadow
  }

  /// Loads the named policy. It reads files, so don't call it on the event loop's thread. The
  /// result is nil if no policy is named.
  public func load(from library: PolicyLibrary) throws(SettingError) -> LifecyclePolicy? {
    guard let name else { return nil }
    let result = library.load(name)
    if let policy = result.value { return policy }
    let first = result.errors.first
    throw SettingError(
      "policy=\(name)", first?.message ?? "can't be read", suggestion: first?.suggestion)
  }

  /// Returns the worker's policy: the result of `load` with these settings.
  ///
  /// - Parameter machine: the machine's policy, which decides what is common to all workers.
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
  /// Returns this policy for one worker: the values that apply to all workers together are the
  /// machine's.
  func ofOneWorker(over machine: LifecyclePolicy) -> LifecyclePolicy {
    var policy = self
    PolicyKeys.all.copyThoseOfMachine(from: machine, to: &policy)
    return policy
  }
}
