import Synchronization

/// A slot's state in shared memory. The worker and the daemon change it only by these methods, from
/// any thread and process. `address` must stay mapped while one of them runs. Each word has 8
/// bytes, aligned to 8.
///
/// Orderings: code that holds or claims a content (acquiring) sees what was written to the content
/// before it was released (releasing). No access to the content moves out from between the two.
public struct PurgeableWord {
  public let address: UnsafeMutablePointer<Atomic<UInt64>>
  public init(_ address: UnsafeMutablePointer<Atomic<UInt64>>) { self.address = address }

  public var state: PurgeableState {
    PurgeableState(rawValue: address.pointee.load(ordering: .acquiring))
  }

  /// Begins an access to the content. The result is false if the content was discarded, or is about
  /// to be.
  public func retain(generation: UInt32) -> Bool {
    update { $0.retained(generation: generation) } != nil
  }

  /// Ends an access that `retain` began.
  ///
  /// - Returns: the new state, or `nil` if the content wasn't held.
  @discardableResult
  public func release(generation: UInt32) -> PurgeableState? {
    update { $0.released(generation: generation) }
  }

  /// Claims the content, to empty it. After that no other code holds, claims or moves it. End the
  /// claim with `empty` or `spare`.
  ///
  /// - Parameter generation: The generation of the content that is meant; `nil` means any content.
  /// - Returns: the new state, or `nil` if the content mustn't be purged. There is one attempt
  ///   only: a slot that changes at the same moment is in use.
  public func claim(generation: UInt32? = nil) -> PurgeableState? {
    let current = state
    guard current.isPurgeable, generation == nil || current.generation == generation else {
      return nil
    }
    let claimed = current.claimed
    let (done, _) = address.pointee.compareExchange(
      expected: current.rawValue, desired: claimed.rawValue, ordering: .acquiringAndReleasing)
    return done ? claimed : nil
  }

  /// Claims the content for its owner, which knows that no code will access it any more, however
  /// many accesses were left open. The result is `nil` if the content was discarded, or is being
  /// emptied.
  public func seize(generation: UInt32) -> PurgeableState? {
    update { state in
      guard state.isUsed, !state.isPurging, state.generation == generation else { return nil }
      return PurgeableState(generation: generation, accesses: 0).claimed
    }
  }

  /// Discards the content, after `claim` or `seize`.
  public func empty(_ claimed: PurgeableState) { publish(claimed.emptied) }

  /// Keeps the content after all, after `claim`.
  public func spare(_ claimed: PurgeableState) { publish(claimed.spared) }

  /// Sets the state. Only code that has the slot to itself may call it: the slot is unused, or
  /// claimed by the caller.
  public func publish(_ state: PurgeableState) {
    address.pointee.store(state.rawValue, ordering: .releasing)
  }

  /// Changes the state by compare-and-swap until it succeeds. Only the worker calls it, so it
  /// competes only with the worker's own threads.
  private func update(_ change: (PurgeableState) -> PurgeableState?) -> PurgeableState? {
    var current = state
    while let next = change(current) {
      let (done, original) = address.pointee.compareExchange(
        expected: current.rawValue, desired: next.rawValue, ordering: .acquiringAndReleasing)
      if done { return next }
      current = PurgeableState(rawValue: original)
    }
    return nil
  }
}
