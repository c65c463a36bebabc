/// The way in which a worker gets its memory back.
public enum RestoreMode: Sendable, Hashable {
  /// All of its memory is restored before it runs.
  case eager
  /// The pages that it needs first, and those that can't be missing, are restored before it runs.
  /// The others follow; a thread that touches a missing page waits for it. If a lazy restore isn't
  /// possible, the restore is eager.
  ///
  /// - Parameter learns: what happens at the first resume, when the working set isn't known. With
  ///   true, nearly all pages are missing then, and the restore learns the working set; this takes
  ///   longer. With false, the restore is eager.
  case lazy(learns: Bool)
}
