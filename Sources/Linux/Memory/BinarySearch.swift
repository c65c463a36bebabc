extension RandomAccessCollection where Index == Int {
  /// Returns the index of the first element for which the condition is true, or `endIndex` if there
  /// is none. The condition must be true for all elements behind that one.
  @inlinable public func partitioningIndex(where isBehind: (Element) -> Bool) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = (low + high) / 2
      if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
