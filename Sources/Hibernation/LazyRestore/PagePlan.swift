import Linux

/// The pages of a process that move, and the chunks in which they are captured.
struct PagePlan: Sendable {
  /// The pages that are freed when the image is complete, sorted by address.
  var ranges: [PageRange] = []
  var chunks: [PlannedChunk] = []
  /// Mappings that have pages in the background fill.
  var backgroundMappings: [PageRange] = []
  /// The pages of `chunks`, grouped by kind and sorted by address.
  private(set) var byKind: [(kind: Kind, ranges: [PageRange])] = []
  /// True if some of the pages may be missing while the process runs.
  let isForLazyRestore: Bool
  /// Mappings whose writes can be tracked.
  private(set) var trackableMappings: [PageRange] = []

  var bytes: UInt64 { ranges.bytes }

  /// Up to `ImageLayout.chunkLength` bytes of pages of one kind.
  struct PlannedChunk: Sendable {
    var process: Int
    var kind: Kind
    var ranges: [PageRange] = []
    var length: UInt64 = 0
  }

  /// The properties that all pages of a chunk have in common, so that one call reads or writes the
  /// chunk.
  struct Kind: Hashable, Sendable {
    /// True if process_vm_readv can read the page. Otherwise it is read through /proc/PID/mem.
    /// True if the process may write to the page.
    var readable: Bool
    var writable: Bool
    /// True if a missing page reads as zeros, so that pages of zeros needn't be stored. It is false
    /// for private copies of a file's pages: without the copy, the file's content is visible.
    var absentIsZero: Bool
    /// True if the page belongs to the working set: it is restored before the process runs.
    var isPrefetched = false
    /// True if the page is filled in the background, while the process runs.
    var isBackgroundFilled = false
  }

  /// Plans the pages of one process.
  ///
  /// - Parameters:
  ///   - keep: addresses that stay in memory.
  ///   - workingSet: the pages that are needed first, for an image from which a process may be
  ///     restored lazily; otherwise `nil`.
  ///   - servesPages: true if the process gets only the pages that it needs.
  ///   - keepsFilePages: true keeps private copies of files' pages.
  init(
    process: Int, mappings: [MemoryMapping], pages: PageMap, keep: [Range<UInt64>],
    workingSet: WorkingSet? = nil, servesPages: Bool = false,
    keepsFilePages: Bool = false
  ) throws(SystemCallError) {
    isForLazyRestore = workingSet != nil
    var byKind: [Kind: [PageRange]] = [:]
    for mapping in mappings where Self.canMove(mapping) {
      // They can't be missing, so a process that runs on would get them back at once.
      if mapping.hasFile, servesPages || keepsFilePages { continue }
      let present = try pages.privatePages(from: mapping.start, to: mapping.end)
      let moving = Self.subtract(keep, from: present)
      var kind = Kind(
        readable: mapping.readable, writable: mapping.writable,
        absentIsZero: !mapping.hasFile)
      if let workingSet {
        // Pages of files can't be missing: userfaultfd doesn't accept them.
        let (prefetched, background) =
          mapping.hasFile ? (moving, []) : moving.split(byPages: workingSet.pages)
        kind.isPrefetched = true
        byKind[kind, default: []] += prefetched
        kind.isPrefetched = false
        kind.isBackgroundFilled = true
        byKind[kind, default: []] += background
        if !background.isEmpty {
          backgroundMappings.append(mapping.range)
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
      let limit =
        switch (kind.isPrefetched, servesPages ? false : workingSet?.isLearned) {
        case (true, _): ImageLayout.prefetchChunkLength
        // It isn't known which pages are needed first: each of them costs its chunk's
        // decompression.
        case (false, false?): ImageLayout.learningChunkLength
        case (false, _): ImageLayout.chunkLength
        }
      chunks += Self.chunks(of: ranges, kind: kind, process: process, limit: limit)
    }
  }

  private static func rank(_ kind: Kind) -> Int {
    (kind.isPrefetched ? 0 : 8) + (kind.readable ? 0 : 4) + (kind.writable ? 0 : 2)
      + (kind.absentIsZero ? 0 : 1)
  }

  static let kernelOwned = ["[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "[uprobes]"]

  static func canMove(_ mapping: MemoryMapping) -> Bool {
    let immovable: MemoryMapping.Flags = [
      .shared, .deviceMemory, .pureFrames, .droppable, .shadowStack,
    ]
    if mapping.shared || kernelOwned.contains(mapping.name) { return false }
    if !mapping.flags.isDisjoint(with: immovable) { return false }
    // They are breakpoints, of a debugger or of a uprobe. If it ends while the worker sleeps, the
    // image would bring the breakpoint back.
    if mapping.hasFile, mapping.executable, !mapping.writable { return false }
    // The kernel refuses to discard pages of a sealed mapping (mseal(2)) that isn't writable.
    if mapping.flags.contains(.sealed), !mapping.writable { return false }
    return mapping.anonymous > 0
  }

  /// Divides ranges of one kind into chunks.
  ///
  /// - Parameter limit: the greatest number of bytes in a chunk.
  static func chunks(
    of ranges: [PageRange], kind: Kind, process: Int, limit: Int
  ) -> [PlannedChunk] {
    let limit = UInt64(limit)
    var chunks: [PlannedChunk] = []
    var chunk = PlannedChunk(process: process, kind: kind)
    for var remainder in ranges {
      while remainder.length > 0 {
        let (piece, tail) = remainder.split(after: limit - chunk.length)
        chunk.ranges.append(piece)
        chunk.length += piece.length
        remainder = tail
        // One call of process_vm_readv accepts at most 1024 ranges.
        if chunk.length == limit || chunk.ranges.count == 1024 {
          chunks.append(chunk)
          chunk = PlannedChunk(process: process, kind: kind)
        }
      }
    }
    if chunk.length > 0 { chunks.append(chunk) }
    return chunks
  }

  /// Returns the pages of `present` that no range in `keep` touches.
  static func subtract(_ keep: [Range<UInt64>], from pages: [PageRange]) -> [PageRange] {
    pages.subtracting(wholePages(keep))
  }

  /// Returns all pages that a range touches.
  static func wholePages(_ ranges: [Range<UInt64>]) -> [PageRange] {
    ranges.filter { !$0.isEmpty }.map {
      PageRange(
        from: $0.lowerBound / pageSize * pageSize,
        to: ($0.upperBound + pageSize - 1) / pageSize * pageSize)
    }.union()
  }

  /// Finds free addresses for the scratch area: below a mapping that has a wide gap under it, but
  /// not below the stack, which grows, or below the vsyscall page, which is beyond the addresses
  /// that can be mapped. In a program without libraries the widest gap is below the kernel's own
  /// [vvar]. No thread runs while the area is mapped, so no other mapping is affected.
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
