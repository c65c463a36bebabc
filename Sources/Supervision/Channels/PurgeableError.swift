import Linux

/// Why a file that a worker sent can't be used as purgeable memory.
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
    case .notSharedMemory(let error): "not a memfd of ordinary pages (\(error.reason))"
    case .notSealed: "not sealed with F_SEAL_SHRINK and F_SEAL_GROW"
    case .unreadable(let error): "can't be read and written: \(error)"
    case .wrongMagic: "does not begin with DORMPRG1"
    case .tooManySlots(let count): "invalid number of slots: \(count)"
    case .wrongDataOffset(let offset): "invalid offset of its contents: \(offset)"
    }
  }
}
