import Synchronization

/// A slot's state in shared memory. Both sides change it only by these, from any thread and process.
/// `address` must stay mapped while one of them runs; each word is 8 bytes, aligned to 8.
///
/// Orderings: code that holds or takes a content (acquiring) sees what was written to it before it was released
/// (releasing), and no access to it moves out from between the two.
public struct PurgeableWord {
  public let address: UnsafeMutablePointer<Atomic<UInt64>>
  public init(_ address: UnsafeMutablePointer<Atomic<UInt64>>) { self.address = address }

  public var state: PurgeableState {
    PurgeableState(rawValue: address.pointee.load(ordering: .acquiring))
  }

  /// Holds the content once more. False: it was discarded, or is about to be.
  public func hold(generation: UInt32) -> Bool {
    update { $0.held(generation: generation) } != nil
  }

  /// Releases what `hold` held.
  ///
  /// - Returns: the new state, `nil` if it wasn't held.
  @discardableResult
  public func release(generation: UInt32) -> PurgeableState? {
    update { $0.released(generation: generation) }
  }

  /// Whether it may be taken while it isn't held. False: it was discarded, or is about to be.
  public func setVolatile(_ isVolatile: Bool, generation: UInt32) -> Bool {
    update {
      guard $0.isUsed, !$0.isPurging, $0.generation == generation else { return nil }
      return $0.withVolatile(isVolatile)
    } != nil
  }

  /// Claims the content, to empty it: then no other code holds, takes or moves it. End with `empty` or `spare`.
  ///
  /// - Parameter generation: of the content that is meant; `nil`: whichever there is.
  /// - Returns: the state now, `nil` where it mustn't be taken. It isn't tried again and again: a slot that
  ///   changes at the same moment is in use.
  public func take(generation: UInt32? = nil) -> PurgeableState? {
    let current = state
    guard current.isTakeable, generation == nil || current.generation == generation else {
      return nil
    }
    let taken = current.taken
    let (done, _) = address.pointee.compareExchange(
      expected: current.rawValue, desired: taken.rawValue, ordering: .acquiringAndReleasing)
    return done ? taken : nil
  }

  /// The same for the owner of the content, which knows that no code will access it any more: however many
  /// accesses were left open. `nil`: it was discarded, or is being taken.
  public func seize(generation: UInt32) -> PurgeableState? {
    update { state in
      guard state.isUsed, !state.isPurging, state.generation == generation else { return nil }
      return PurgeableState(generation: generation, accesses: 0).taken
    }
  }

  /// After `take` or `seize`: the content is discarded.
  public func empty(_ taken: PurgeableState) { publish(taken.emptied) }

  /// After `take`: it stays after all.
  public func spare(_ taken: PurgeableState) { publish(taken.spared) }

  /// For code that has the slot to itself: unused, or being taken.
  public func publish(_ state: PurgeableState) {
    address.pointee.store(state.rawValue, ordering: .releasing)
  }

  /// Only the worker's side loops, and only against its own threads.
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
