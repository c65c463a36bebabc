import Lifecycle

/// A step of the simulation that is due at some time.
struct FleetStep {
  enum Kind {
    case event(Event)
    /// A long use ends.
    case useEnds
    case trimEnds
    /// A use tries again, after the kernel ended the worker for which it waited.
    case retry
    /// A reading of the memory.
    case sample
  }
  /// The number of the worker. −1: the machine.
  var worker: Int32
  var life: Int32
  var kind: Kind
}

/// The steps that are due, the earliest first. Steps of the same time are in the order in which
/// they were added. The heap holds only times and indexes: its entries are small, and the steps
/// stay where they are.
struct FleetStepQueue {
  private struct Entry {
    var at: Int64
    var order: UInt32
    var index: Int32
  }

  private var heap: [Entry] = []
  private var steps: [FleetStep?] = []
  private var free: [Int32] = []
  private var count: UInt32 = 0

  var first: Int64? { heap.first?.at }

  mutating func add(at: Int64, worker: Int32, life: Int32, kind: FleetStep.Kind) {
    count &+= 1
    let index = free.popLast() ?? Int32(steps.count)
    if Int(index) == steps.count { steps.append(nil) }
    steps[Int(index)] = FleetStep(worker: worker, life: life, kind: kind)
    heap.append(Entry(at: at, order: count, index: index))
    var child = heap.count - 1
    while child > 0, isBefore(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func popFirst() -> FleetStep? {
    guard let first = heap.first else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink()
    }
    free.append(first.index)
    return steps[Int(first.index)].take()
  }

  private mutating func sink() {
    var index = 0
    while true {
      let left = 2 * index + 1
      guard left < heap.count else { return }
      let right = left + 1
      let child = right < heap.count && isBefore(right, left) ? right : left
      guard isBefore(child, index) else { return }
      heap.swapAt(child, index)
      index = child
    }
  }

  private func isBefore(_ one: Int, _ other: Int) -> Bool {
    (heap[one].at, heap[one].order) < (heap[other].at, heap[other].order)
  }
}
