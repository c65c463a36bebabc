/// The free pages of a file: extents in order, none of which touches the next.
struct PageExtents {
  struct Extent: Hashable {
    var start: Int
    var count: Int
    var end: Int { start + count }
  }

  private(set) var free: [Extent]

  init(pages: Int) { free = pages > 0 ? [Extent(start: 0, count: pages)] : [] }

  /// Takes pages from the first extent that is large enough. The result is the first page, or `nil`
  /// if there is no such extent.
  mutating func allocate(_ count: Int) -> Int? {
    guard count > 0, let index = free.firstIndex(where: { $0.count >= count }) else { return nil }
    let start = free[index].start
    if free[index].count == count {
      free.remove(at: index)
    } else {
      free[index].start += count
      free[index].count -= count
    }
    return start
  }

  /// Gives back pages that `allocate` returned.
  mutating func release(_ start: Int, _ count: Int) {
    var low = 0
    var high = free.count
    while low < high {
      let middle = (low + high) / 2
      if free[middle].start < start { low = middle + 1 } else { high = middle }
    }
    let touchesNext = low < free.count && free[low].start == start + count
    if low > 0, free[low - 1].end == start {
      free[low - 1].count += count
      if touchesNext { free[low - 1].count += free.remove(at: low).count }
    } else if touchesNext {
      free[low].start = start
      free[low].count += count
    } else {
      free.insert(Extent(start: start, count: count), at: low)
    }
  }
}
