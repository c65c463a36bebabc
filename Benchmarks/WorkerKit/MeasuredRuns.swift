import Dispatch

/// Medians, least and most of what was measured, in the order in which it was first.
struct Table {
  private var names: [String] = []
  private var samples: [String: [Double]] = [:]
  private var units: [String: String] = [:]

  mutating func add(_ name: String, _ value: Double, _ unit: String) {
    if samples[name] == nil { names.append(name) }
    samples[name, default: []].append(value)
    units[name] = unit
  }

  func print() {
    Swift.print("| what | median | least | most |\n|---|---|---|---|")
    for name in names {
      guard let sorted = samples[name]?.sorted(), let unit = units[name] else { continue }
      let values = [sorted[sorted.count / 2], sorted[0], sorted[sorted.count - 1]]
      Swift.print(
        "| \(name) |", values.map { "\(rounded($0)) \(unit)" }.joined(separator: " | "), "|")
    }
  }

  private func rounded(_ value: Double) -> String {
    value < 10 ? "\((value * 100).rounded() / 100)" : "\(Int(value.rounded()))"
  }
}

func nanoseconds(_ body: () -> Void) -> Double {
  let time = ContinuousClock().measure(body).components
  return Double(time.seconds) * 1e9 + Double(time.attoseconds) * 1e-9
}

/// Nanoseconds for each of `count` times on each of `threads` threads at once.
func perOperation(threads: Int, _ count: Int, _ body: @Sendable (Int) -> Void) -> Double {
  nanoseconds {
    if threads == 1 {
      body(0)
    } else {
      DispatchQueue.concurrentPerform(iterations: threads, execute: body)
    }
  } / Double(count)
}

/// Cheap, and the same for all contestants.
struct Places {
  private var state: UInt64
  private let mask: UInt64
  /// - Parameter count: a power of two.
  init(_ seed: Int, count: Int) {
    state = UInt64(seed) &* 2 &+ 1
    mask = UInt64(count - 1)
  }
  mutating func next() -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int((state >> 33) & mask)
  }
}
