import Linux

extension Hibernator {
  /// Moves the anonymous memory of a running worker to the kernel's swap. The worker goes on
  /// running; what it touches comes back by itself.
  ///
  /// - Parameter record: the path of the file that a later daemon needs to repair the worker if
  ///   this one dies in the middle of it.
  func trim(_ target: HibernationTarget, record: String) throws(HibernationError) -> TrimSummary {
    throw HibernationError(.checking, "this version can't trim", aftermath: .ineligible)
  }

  /// Moves all memory of a running worker that is in swap back into RAM.
  func fill(_ target: HibernationTarget) throws(HibernationError) -> TrimSummary {
    throw HibernationError(.checking, "this version can't fill", aftermath: .ineligible)
  }
}

extension HibernationService {
  /// Trims a running worker; see `Hibernator.trim`. It waits for the worker's other operations.
  public func trim(
    _ target: HibernationTarget, record: String,
    then completion: @escaping @Sendable (Result<TrimSummary, HibernationError>) -> Void
  ) {
    submit(about: target.name, completion) { (hibernator) throws(HibernationError) in
      try hibernator.trim(target, record: record)
    }
  }

  /// Fills a running worker; see `Hibernator.fill`.
  public func fill(
    _ target: HibernationTarget,
    then completion: @escaping @Sendable (Result<TrimSummary, HibernationError>) -> Void
  ) {
    submit(about: target.name, completion) { (hibernator) throws(HibernationError) in
      try hibernator.fill(target)
    }
  }
}
