import Dispatch
import Glibc
import Linux
import Synchronization

/// Memory descriptors that a later daemon needs to bring sleepers back, where Yama would refuse to let
/// it open them. Each is with a `DescriptorKeeper` before a page of its process is freed.
struct KeptMemories {
  private var workers: [String: [ProcessIdentity: Descriptor]] = [:]
  /// Set by a daemon whose successor may not trace its workers.
  var isRequired = false
  private var keeper: DescriptorKeeper?

  /// A new keeper gets whatever an earlier one had.
  mutating func set(_ keeper: DescriptorKeeper) throws(SystemCallError) {
    self.keeper = keeper
    for memories in workers.values {
      for (process, memory) in memories { try keeper.keep(process, memory) }
    }
  }

  /// What speaks against hibernating a worker.
  func obstacle(_ target: HibernationTarget) -> HibernationError? {
    guard isRequired else { return nil }
    if target.cgroup?.freezer == nil {
      return HibernationError(
        .checking,
        "it has no cgroup of its own, and the kernel (kernel.yama.ptrace_scope) would keep a later "
          + "daemon from bringing it back", .ineligible)
    }
    if keeper == nil {
      return HibernationError(
        .checking,
        "the process isn't there that would hand its memory to a later daemon "
          + "(kernel.yama.ptrace_scope)")
    }
    return nil
  }

  mutating func keep(
    _ memory: Descriptor, of process: ProcessIdentity, _ worker: String
  ) throws(SystemCallError) {
    guard isRequired else { return }
    try keeper?.keep(process, memory)
    workers[worker, default: [:]][process] = memory
  }

  /// The worker runs.
  mutating func drop(_ worker: String) {
    for process in (workers.removeValue(forKey: worker) ?? [:]).keys { keeper?.drop(process) }
  }
}

private final class Flag: Sendable {
  private let value = Atomic(false)
  var isRaised: Bool { value.load(ordering: .acquiring) }
  func raise() { value.store(true, ordering: .releasing) }
}

extension HibernationService {
  /// For a daemon whose successor may not open the memory of its workers: hibernates only what a keeper
  /// can hand on.
  public func requireKeeper() {
    submit { $0.kept.isRequired = true }
  }

  /// - Parameters:
  ///   - taking: what an earlier daemon's keeper has given us, by worker.
  ///   - failed: called on another thread.
  public func set(
    _ keeper: DescriptorKeeper, taking: [String: [ProcessIdentity: Descriptor]] = [:],
    from handedOver: HandedOver? = nil, failed: @escaping @Sendable (SystemCallError) -> Void
  ) {
    submit { hibernator in
      do throws(SystemCallError) { try hibernator.kept.set(keeper) } catch { failed(error) }
    }
    let hasFailed = Flag()
    let group = DispatchGroup()
    for (worker, memories) in taking {
      group.enter()
      submit(about: worker) { hibernator in
        do throws(SystemCallError) {
          for (process, memory) in memories {
            try hibernator.kept.keep(memory, of: process, worker)
          }
        } catch {
          hasFailed.raise()
          failed(error)
        }
        group.leave()
      }
    }
    group.notify(queue: .global()) {
      if !hasFailed.isRaised { handedOver?.areTaken() }
    }
  }
}
