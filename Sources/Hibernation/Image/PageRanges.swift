import CLinux
import Linux

/// Sets of pages as runs by address: sorted, none touching the next where that can be helped, none
/// overlapping.
enum PageRanges {
  /// Adds a run that comes after all others.
  static func append(_ range: clinux_range, to ranges: inout [clinux_range]) {
    if range.length == 0 { return }
    if let last = ranges.indices.last, ranges[last].end == range.address {
      ranges[last].length += range.length
    } else {
      ranges.append(range)
    }
  }

  /// Runs in any order, none overlapping, as a set.
  static func set(of ranges: [clinux_range]) -> [clinux_range] {
    var result: [clinux_range] = []
    for range in ranges.sorted(by: { $0.address < $1.address }) { append(range, to: &result) }
    return result
  }

  static func intersection(_ one: [clinux_range], _ other: [clinux_range]) -> [clinux_range] {
    split(one, by: other).inside
  }

  /// What of `ranges` is in `set`, and what isn't. Both are sorted.
  static func split(
    _ ranges: [clinux_range], by set: [clinux_range]
  ) -> (inside: [clinux_range], outside: [clinux_range]) {
    var result: (inside: [clinux_range], outside: [clinux_range]) = ([], [])
    var next = 0
    for range in ranges {
      var position = range.address
      while next < set.count, set[next].end <= position { next += 1 }
      // The last one may reach into the next range.
      var index = next
      while index < set.count, set[index].address < range.end {
        let start = max(position, set[index].address)
        let end = min(range.end, set[index].end)
        append(clinux_range(address: position, length: start - position), to: &result.outside)
        append(clinux_range(address: start, length: end - start), to: &result.inside)
        position = end
        index += 1
      }
      append(clinux_range(address: position, length: range.end - position), to: &result.outside)
    }
    return result
  }
}

extension clinux_range {
  var end: UInt64 { address + length }
}

extension [clinux_range] {
  var bytes: UInt64 { reduce(0) { $0 + $1.length } }
}
