/// Returns indices in the order of their keys, without sorting ten thousand workers to find two. It
/// takes linear time to build, and logarithmic time for each index that is popped.
struct PartialHeap<Key: Comparable> {
  private var heap: [(key: Key, index: Int)]

  init(_ members: [(key: Key, index: Int)]) {
    heap = members
    for position in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(from: position) }
  }

  var isEmpty: Bool { heap.isEmpty }

  mutating func popFirst() -> Int? {
    guard let first = heap.first?.index else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink(from: 0)
    }
    return first
  }

  private mutating func sink(from start: Int) {
    var position = start
    while true {
      let left = 2 * position + 1
      guard left < heap.count else { return }
      let right = left + 1
      let child = right < heap.count && heap[right].key < heap[left].key ? right : left
      guard heap[child].key < heap[position].key else { return }
      heap.swapAt(position, child)
      position = child
    }
  }
}
