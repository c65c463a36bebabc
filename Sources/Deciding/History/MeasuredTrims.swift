import Lifecycle
import Policy
import Simulation

/// What trims did in a journal.
struct MeasuredTrims: Sendable, Hashable {
  /// The shares of the memory that was in RAM right after a trim.
  private(set) var left = MeasuredCosts.Mean()
  /// The shares of the trimmed memory that came back before something else moved it.
  private(set) var returned = MeasuredCosts.Mean()
  var failures = 0

  var count: Int { left.count }

  mutating func add(_ trim: ObservedTrim) {
    let (after, moved) = (trim.result.residentAfter.bytes, trim.result.swapped.bytes)
    guard moved > 0 else { return }
    let memory = Double(after + moved)
    left.add(Double(max(0, after)) / memory, weight: memory)
    returned.add(Double(trim.cameBack) / Double(moved), weight: Double(moved))
  }

  /// The measured shares. If all trims failed, nothing can be trimmed. `nil`: no trim was tried.
  func shares(_ defaults: MachineModel.TrimShares) -> MachineModel.TrimShares? {
    if let left = left.value {
      return .init(left: left, returned: returned.value ?? defaults.returned)
    }
    return failures > 0 ? .init(left: 1, returned: 0) : nil
  }
}

/// A trim, and how much of its memory has come back.
struct ObservedTrim {
  let result: TrimResult
  private(set) var cameBack: Int64 = 0

  init(_ result: TrimResult) { self.result = result }

  /// Compares a measurement with the trim, as the engine does: memory that the worker has freed
  /// leaves swap without coming back.
  mutating func observe(footprint: Int64, swapped: Int64) {
    let gone = result.swapped.bytes - swapped
    let grown = footprint - swapped - result.residentAfter.bytes
    cameBack = min(max(cameBack, min(gone, grown)), max(0, result.swapped.bytes))
  }
}
