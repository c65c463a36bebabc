import Linux

/// Why what a worker sent as purgeable memory isn't taken for it.
public enum PurgeableError: Error, Hashable, Sendable, CustomStringConvertible {
  /// It isn't a file of shared memory in ordinary pages (memfd_create(2)).
  case notSharedMemory(SystemCallError)
  /// It could be cut while we read it.
  case notSealed
  case unreadable(SystemCallError)
  case wrongMagic
  /// More than `PurgeableLayout.maxSlots`.
  case tooManySlots(Int)
  /// The contents begin before the table ends, behind the file's end, or not at a page.
  case wrongDataOffset(Int)

  public var description: String {
    switch self {
    case .notSharedMemory(let error): "it isn't a memfd of ordinary pages (\(error.reason))"
    case .notSealed: "it isn't sealed with F_SEAL_SHRINK and F_SEAL_GROW"
    case .unreadable(let error): "it can't be read and changed: \(error)"
    case .wrongMagic: "it doesn't begin with DORMPRG1"
    case .tooManySlots(let count): "it has \(count) slots"
    case .wrongDataOffset(let offset): "its contents can't begin at \(offset)"
    }
  }
}
