import Glibc
import Linux
import Synchronization

/// Memory descriptors that a later daemon needs to restore hibernated workers, if Yama would refuse
/// to let it open them. A `DescriptorKeeper` gets each descriptor before a page of its process is
/// freed. All hibernators of a service share one object; each hibernator is used by one thread at a
/// time.
final class KeptMemories: Sendable {
  private struct State {
    var workers: [String: [ProcessIdentity: Descriptor]] = [:]
    var isRequired = false
    var keeper: DescriptorKeeper?
  }

  private let state = Mutex(State())

  /// Makes a keeper necessary: the daemon's successor may not trace its workers.
  func require() { state.withLock { $0.isRequired = true } }

  var isNeeded: Bool { state.withLock { $0.isRequired } }

  /// The names of the workers of which it has descriptors.
  var workers: Set<String> { Set(state.withLock { $0.workers.keys }) }

  /// Sets the keeper. From now on workers can be hibernated. The new keeper gets all descriptors
  /// that an earlier one had, and those that an earlier daemon's keeper has handed over: see
  /// `giveAll`.
  func set(
    _ keeper: DescriptorKeeper, taking more: [String: [ProcessIdentity: Descriptor]]
  ) {
    state.withLock { state in
      state.keeper = keeper
      state.workers.merge(more) { ours, theirs in ours.merging(theirs) { _, new in new } }
    }
  }

  func giveAll(to keeper: DescriptorKeeper) throws(SystemCallError) {
    let all = state.withLock { $0.workers }
    for memories in all.values {
      for (process, memory) in memories { try keeper.keep(process, memory) }
    }
  }

  /// Returns the reason why a worker can't be hibernated, or `nil` if it can.
  func obstacle(_ target: HibernationTarget) -> HibernationError? {
    let (isRequired, hasKeeper) = state.withLock { ($0.isRequired, $0.keeper != nil) }
    guard isRequired else { return nil }
    if target.cgroup?.freezer == nil {
      return HibernationError(
        .checking,
        "it has no cgroup of its own, and kernel.yama.ptrace_scope would prevent a later daemon "
          + "from restoring it", aftermath: .ineligible)
    }
    if !hasKeeper {
      return HibernationError(
        .checking,
        "the descriptor keeper isn't running, and without it no later daemon could restore the "
          + "worker (kernel.yama.ptrace_scope)")
    }
    return nil
  }

  func keep(
    _ memory: Descriptor, of process: ProcessIdentity, _ worker: String
  ) throws(SystemCallError) {
    let (isRequired, keeper) = state.withLock { ($0.isRequired, $0.keeper) }
    guard isRequired else { return }
    try keeper?.keep(process, memory)
    state.withLock { $0.workers[worker, default: [:]][process] = memory }
  }

  /// Drops the descriptors of a worker that runs.
  func drop(_ worker: String) {
    let (dropped, keeper) = state.withLock { state in
      (state.workers.removeValue(forKey: worker) ?? [:], state.keeper)
    }
    for process in dropped.keys { keeper?.drop(process) }
  }
}

extension HibernationService {
  /// Makes a keeper necessary: this daemon's successor may not open the memory of its workers. From
  /// now on a worker is hibernated only if a keeper can hand on its descriptors.
  public func requireKeeper() { kept.require() }

  /// Sets the keeper, and sends it all descriptors on another thread.
  ///
  /// - Parameters:
  ///   - taking: the descriptors from an earlier daemon's keeper, by worker.
  ///   - handedOver: the connection to that keeper, which ends when the new one has everything.
  ///   - failed: called on another thread if the descriptors can't be sent.
  public func set(
    _ keeper: DescriptorKeeper, taking: [String: [ProcessIdentity: Descriptor]] = [:],
    from handedOver: HandedOverMemories? = nil,
    failed: @escaping @Sendable (SystemCallError) -> Void
  ) {
    // The keeper is set at once: the next hibernation must find it.
    kept.set(keeper, taking: taking)
    commonQueue.submit { [kept] in
      do throws(SystemCallError) {
        try kept.giveAll(to: keeper)
        handedOver?.confirm()
      } catch { failed(error) }
    }
  }
}
