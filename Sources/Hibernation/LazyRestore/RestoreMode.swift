/// How a worker gets its memory back.
public enum RestoreMode: Sendable, Hashable {
  /// All of its memory is restored before it runs.
  case eager
  /// The pages that it needs first, and those that can't be missing, are restored before it runs. The rest
  /// follows; a thread that touches a missing page waits for it. If a lazy restore isn't possible, the
  /// restore is eager.
  ///
  /// - Parameter learns: at the first resume the working set isn't known. True: nearly all pages are missing
  ///   then, and the restore learns the working set; this takes longer. False: the restore is eager.
  case lazy(learns: Bool)
}
