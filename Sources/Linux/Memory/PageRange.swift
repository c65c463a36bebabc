import CLinux

/// A run of bytes in the address space of a process, usually of whole pages.
///
/// It has the layout of `clinux_range` (and so of `iovec`), so that the shims and the kernel can
/// use arrays of it without a copy. `PageRangeTests` checks that.
public struct PageRange: Hashable, Sendable {
  public var address: UInt64
  /// The length in bytes.
  public var length: UInt64

  @inlinable
  public init(address: UInt64, length: UInt64) {
    self.address = address
    self.length = length
  }

  /// - Parameter end: the first address after the range, at or after `start`.
  @inlinable
  public init(from start: UInt64, to end: UInt64) {
    self.init(address: start, length: end - start)
  }

  /// The first address after the range.
  @inlinable public var end: UInt64 { address + length }

  @inlinable public var isEmpty: Bool { length == 0 }

  @inlinable
  public func contains(_ address: UInt64) -> Bool {
    address >= self.address && address - self.address < length
  }

  @inlinable
  public func contains(_ other: PageRange) -> Bool {
    other.address >= address && other.end <= end
  }

  @inlinable
  public func intersects(_ other: PageRange) -> Bool {
    intersection(with: other) != nil
  }

  /// The range that both have in common; `nil` if there is none.
  @inlinable
  public func intersection(with other: PageRange) -> PageRange? {
    let start = max(address, other.address)
    let end = min(self.end, other.end)
    return start < end ? PageRange(from: start, to: end) : nil
  }

  /// Splits the range into its first `length` bytes and the remaining ones.
  @inlinable
  public func split(after length: UInt64) -> (head: PageRange, tail: PageRange) {
    let first = min(length, self.length)
    return (
      PageRange(address: address, length: first),
      PageRange(address: address + first, length: self.length - first)
    )
  }

  /// The addresses of its pages.
  @inlinable public var pages: StrideTo<UInt64> {
    stride(from: address, to: end, by: Int(pageSize))
  }
}

extension Sequence<PageRange> {
  /// The total length of the ranges in bytes.
  @inlinable public var bytes: UInt64 { reduce(0) { $0 + $1.length } }

  /// The smallest range that contains all of them, in whatever order they are. It is empty if there
  /// are none.
  @inlinable public var hull: PageRange {
    var (start, end) = (UInt64.max, UInt64(0))
    for range in self {
      (start, end) = (Swift.min(start, range.address), Swift.max(end, range.end))
    }
    return start < end ? PageRange(from: start, to: end) : PageRange(address: 0, length: 0)
  }
}

/// Sets of pages as ranges. They are sorted by address and don't overlap. Neighbours are joined if
/// one of these functions has made the set.
extension [PageRange] {
  /// Appends a range that lies after all others. If it begins at the end of the last one, the two
  /// are joined.
  @inlinable
  public mutating func appendBehind(_ range: PageRange) {
    if range.isEmpty { return }
    if let last = indices.last, self[last].end == range.address {
      self[last].length += range.length
    } else {
      append(range)
    }
  }

  /// The union of the ranges as a set. The ranges may be in any order and overlap.
  public func union() -> [PageRange] {
    var result: [PageRange] = []
    for range in sorted(by: { $0.address < $1.address }) {
      if let last = result.indices.last, range.address < result[last].end {
        result[last].length = Swift.max(result[last].end, range.end) - result[last].address
      } else {
        result.appendBehind(range)
      }
    }
    return result
  }

  /// Divides the pages into groups of at most `count` ranges and `bytes` bytes. A range that is
  /// longer than that is divided, too.
  public func batches(of count: Int, bytes maxBytes: UInt64) -> [[PageRange]] {
    var result: [[PageRange]] = []
    var batch: [PageRange] = []
    var room = maxBytes
    func end() {
      if !batch.isEmpty { result.append(batch) }
      (batch, room) = ([], maxBytes)
    }
    for range in self {
      var remaining = range
      while !remaining.isEmpty {
        if batch.count == count || room == 0 { end() }
        let (head, tail) = remaining.split(after: room)
        batch.append(head)
        room -= head.length
        remaining = tail
      }
    }
    end()
    return result
  }

  /// The pages that are in both sets.
  public func intersection(with other: [PageRange]) -> [PageRange] { split(by: other).inside }

  /// The pages of this set that aren't in another one.
  public func subtracting(_ other: [PageRange]) -> [PageRange] { split(by: other).outside }

  /// The pages of this set that are in another one, and those that aren't.
  public func split(by set: [PageRange]) -> (inside: [PageRange], outside: [PageRange]) {
    var result: (inside: [PageRange], outside: [PageRange]) = ([], [])
    var next = 0
    for range in self {
      var position = range.address
      while next < set.count, set[next].end <= position { next += 1 }
      // The last range of the other set may reach into the next range.
      var index = next
      while index < set.count, set[index].address < range.end {
        let start = Swift.max(position, set[index].address)
        let end = Swift.min(range.end, set[index].end)
        result.outside.appendBehind(PageRange(from: position, to: start))
        result.inside.appendBehind(PageRange(from: start, to: end))
        position = end
        index += 1
      }
      result.outside.appendBehind(PageRange(from: position, to: range.end))
    }
    return result
  }

  /// Splits the set into the pages whose addresses are in `pages`, and those whose addresses
  /// aren't.
  public func split(byPages pages: Set<UInt64>) -> (inside: [PageRange], outside: [PageRange]) {
    if pages.isEmpty { return ([], self) }
    var result: (inside: [PageRange], outside: [PageRange]) = ([], [])
    for range in self {
      for page in range.pages {
        let one = PageRange(address: page, length: pageSize)
        if pages.contains(page) {
          result.inside.appendBehind(one)
        } else {
          result.outside.appendBehind(one)
        }
      }
    }
    return result
  }
}

// MARK: use by the shims

extension PageRange {
  /// Whether a `clinux_range` has the same layout.
  static var hasLayoutOfShims: Bool {
    MemoryLayout<PageRange>.size == MemoryLayout<clinux_range>.size
      && MemoryLayout<PageRange>.stride == MemoryLayout<clinux_range>.stride
      && MemoryLayout<PageRange>.alignment == MemoryLayout<clinux_range>.alignment
      && MemoryLayout.offset(of: \PageRange.address)
        == MemoryLayout.offset(of: \clinux_range.address)
      && MemoryLayout.offset(of: \PageRange.length) == MemoryLayout.offset(of: \clinux_range.length)
  }

  /// Makes the kernel reclaim the range's pages (MADV_PAGEOUT), except those that other processes
  /// map.
  public func pageOut(of pid: Int32, through pidfd: Descriptor) throws(SystemCallError) {
    var range = clinux_range(address: address, length: length)
    try shim("process_madvise", on: "pid \(pid)") { clinux_page_out(pidfd.raw, &range) }
  }
}

extension [PageRange] {
  /// Reads the ranges by pid (process_vm_readv(2)), one after the other, into `buffer`, which must
  /// have room for all of them. It returns the number of bytes read, which is less if a range can't
  /// be read.
  public func readDirectly(
    from pid: Int32, into buffer: UnsafeMutableRawBufferPointer
  ) throws(SystemCallError) -> Int {
    precondition(buffer.count >= Int(bytes))
    return Int(
      try shim("process_vm_readv", on: "pid \(pid)") {
        withShimRanges { clinux_vm_read(pid, buffer.baseAddress, $0, $1) }
      })
  }

  /// Passes the ranges to a shim without a copy.
  func withShimRanges<Result>(_ body: (UnsafePointer<clinux_range>?, Int32) -> Result) -> Result {
    assert(PageRange.hasLayoutOfShims)
    return withUnsafeBufferPointer { ranges in
      ranges.withMemoryRebound(to: clinux_range.self) { body($0.baseAddress, Int32($0.count)) }
    }
  }
}
