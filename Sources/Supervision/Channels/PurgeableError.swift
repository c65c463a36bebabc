import Linux

/// The reason why a file that a worker sent can't be used as purgeable memory.
public enum PurgeableError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file isn't shared memory in ordinary pages (memfd_create(2)).
  case notSharedMemory(SystemCallError)
  /// The file isn't sealed, so the worker could truncate it while the daemon reads it.
  case notSealed
  case unreadable(SystemCallError)
  case wrongMagic
  /// The file has more slots than `PurgeableLayout.maxSlots`.
  case tooManySlots(Int)
  /// The contents begin before the end of the table, after the end of the file, or not at a page
  /// boundary.
  case wrongDataOffset(Int)

  public var description: String {
    switch self {
    case .notSharedMemory(let error): "not a memfd of ordinary pages (\(error.reason))"
    case .notSealed: "not sealed with F_SEAL_SHRINK and F_SEAL_GROW"
    case .unreadable(let error): "can't be read and written: \(error)"
    case .wrongMagic: "does not begin with DORMPRG1"
    case .tooManySlots(let count): "invalid number of slots: \(count)"
    case .wrongDataOffset(let offset): "invalid offset of its contents: \(offset)"
    }
  }
}
