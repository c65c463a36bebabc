import Linux

/// Which pages of a process move, and in which chunks they are captured.
struct PagePlan: Sendable {
  /// By address; what is freed once the image is complete.
  var ranges: [PageRange] = []
  var chunks: [PlannedChunk] = []
  /// Mappings of which pages may come later.
  var deferredMappings: [PageRange] = []
  /// The same pages as in `chunks`, by address.
  private(set) var byKind: [(kind: Kind, ranges: [PageRange])] = []
  /// Mappings of which writes can be tracked.
  private(set) var trackableMappings: [PageRange] = []

  var bytes: UInt64 { ranges.bytes }

  /// Up to `ImageLayout.chunkLength` bytes of pages of one kind.
  struct PlannedChunk: Sendable {
    var process: Int
    var kind: Kind
    var ranges: [PageRange] = []
    var length: UInt64 = 0
  }

  /// Pages are sorted by what can be done with them, so that a chunk is read and written by one
  /// call.
  struct Kind: Hashable, Sendable {
    /// process_vm_readv can read it; otherwise it is read through /proc/PID/mem.
    var readable: Bool
    var writable: Bool
    /// A page that isn't there reads as zeros, so zero pages needn't be stored. Not so for private
    /// copies of a file's pages: without the copy the file shows through.
    var absentIsZero: Bool
    /// Wanted soon after a resume.
    var isUrgent = false
    /// May come when the process runs already.
    var isDeferred = false
  }

  /// What is known of the pages that a process wants soon after a resume.
  struct WorkingSet: Sendable {
    /// Addresses of pages.
    var pages: Set<UInt64> = []
  }

  /// - Parameters:
  ///   - keep: addresses that stay in memory.
  ///   - hot: for an image from which a process may be resumed with missing pages; else `nil`.
  init(
    process: Int, mappings: [MemoryMapping], pages: PageMap, keep: [Range<UInt64>],
    hot: WorkingSet? = nil
  ) throws(SystemCallError) {
    var byKind: [Kind: [PageRange]] = [:]
    for mapping in mappings where Self.canMove(mapping) {
      let found = try pages.privatePages(from: mapping.start, to: mapping.end)
      let moving = Self.subtract(keep, from: found)
      var kind = Kind(
        readable: mapping.readable, writable: mapping.writable, absentIsZero: !mapping.hasFile)
      if let hot {
        // Files' pages can't be missing: userfaultfd doesn't take them.
        let (urgent, rest) = mapping.hasFile ? (moving, []) : moving.split(byPages: hot.pages)
        kind.isUrgent = true
        byKind[kind, default: []] += urgent
        kind.isUrgent = false
        kind.isDeferred = true
        byKind[kind, default: []] += rest
        if !rest.isEmpty {
          deferredMappings.append(mapping.range)
        }
      } else {
        byKind[kind, default: []] += moving
      }
      for range in moving { ranges.appendBehind(range) }
      if !mapping.hasFile, !moving.isEmpty {
        trackableMappings.append(mapping.range)
      }
    }
    let order = byKind.keys.sorted { Self.rank($0) < Self.rank($1) }
    for kind in order {
      let ranges = byKind[kind] ?? []
      self.byKind.append((kind, ranges))
      let limit = kind.isUrgent ? ImageLayout.urgentChunkLength : ImageLayout.chunkLength
      chunks += Self.chunks(of: ranges, kind: kind, process: process, limit: limit)
    }
  }

  private static func rank(_ kind: Kind) -> Int {
    (kind.isUrgent ? 0 : 8) + (kind.readable ? 0 : 4) + (kind.writable ? 0 : 2)
      + (kind.absentIsZero ? 0 : 1)
  }

  static let kernelOwned = ["[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "[uprobes]"]

  static func canMove(_ mapping: MemoryMapping) -> Bool {
    let immovable: MemoryMapping.Flags = [.shared, .deviceMemory, .pureFrames]
    if mapping.shared || kernelOwned.contains(mapping.name) { return false }
    if !mapping.flags.isDisjoint(with: immovable) { return false }
    // mseal(2): discarding what is sealed and not writable is refused.
    if mapping.flags.contains(.sealed), !mapping.writable { return false }
    return mapping.anonymous > 0
  }

  /// - Parameter limit: bytes of a chunk.
  static func chunks(
    of ranges: [PageRange], kind: Kind, process: Int, limit: Int
  ) -> [PlannedChunk] {
    let limit = UInt64(limit)
    var chunks: [PlannedChunk] = []
    var chunk = PlannedChunk(process: process, kind: kind)
    for var rest in ranges {
      while rest.length > 0 {
        let (part, tail) = rest.split(after: limit - chunk.length)
        chunk.ranges.append(part)
        chunk.length += part.length
        rest = tail
        // 1024: what process_vm_readv takes in one call.
        if chunk.length == limit || chunk.ranges.count == 1024 {
          chunks.append(chunk)
          chunk = PlannedChunk(process: process, kind: kind)
        }
      }
    }
    if chunk.length > 0 { chunks.append(chunk) }
    return chunks
  }

  /// The pages of `found` that no range in `keep` touches.
  static func subtract(_ keep: [Range<UInt64>], from found: [PageRange]) -> [PageRange] {
    let kept = keep.filter { !$0.isEmpty }.map {
      PageRange(
        from: $0.lowerBound / pageSize * pageSize,
        to: ($0.upperBound + pageSize - 1) / pageSize * pageSize)
    }
    return found.subtracting(kept.union())
  }

  /// A free place for the scratch area: under a mapping that has a wide gap below it, but not under
  /// the stack, which grows, or the vsyscall page, which is beyond all that can be mapped. In a program
  /// without libraries the widest gap is under the kernel's own [vvar]. Nothing runs while it is mapped,
  /// so nothing else is lost.
  static func scratchAddress(in mappings: [MemoryMapping]) -> UInt64? {
    let clearance: UInt64 = 512 * 1024
    for (lower, upper) in zip(mappings, mappings.dropFirst()).reversed() {
      if upper.name == "[stack]" || upper.name == "[vsyscall]" { continue }
      guard upper.start > lower.end + 4 * clearance else { continue }
      return upper.start - clearance
    }
    return nil
  }
}
