import Lifecycle
import Policy
import Simulation

@testable import Journal

/// The journal of a simulated history, with the engine after each event.
struct Recording {
  var segments: [[UInt8]] = []
  var engines: [Engine] = []

  /// - Parameter segmentSize: the size in bytes at which the next segment begins.
  init(seed: UInt64, segmentSize: Int = .max) throws {
    let writer = Writer(segmentSize: segmentSize)
    var machine = SimulatedMachine(seed: seed)
    machine.observer = { writer.note($0) }
    try machine.run()
    segments = writer.finished()
    engines = writer.engines
  }

  /// Returns the first of the simulated histories that is long enough for `count` segments of a few
  /// records each.
  static func inSegments(_ count: Int) throws -> Recording {
    for seed: UInt64 in 1...100 {
      let recording = try Recording(seed: seed, segmentSize: 18_000)
      let isLong = recording.segments.dropLast().allSatisfy {
        $0.count(where: { $0 == UInt8(ascii: "\n") }) > 5
      }
      if recording.segments.count >= count, isLong { return recording }
    }
    throw JournalMismatch("no history has \(count) segments")
  }

  var journal: [JournalSegment] {
    segments.enumerated().map { index, bytes in
      JournalSegment(name: "segment-\(index)") { bytes }
    }
  }

  private final class Writer {
    var encoder: JournalEncoder?
    var segments: [[UInt8]] = []
    var engines: [Engine] = []
    var policy = LifecyclePolicy()
    let segmentSize: Int

    init(segmentSize: Int) { self.segmentSize = segmentSize }

    func note(_ step: Observation) {
      do {
        if encoder == nil { try begin(step.before, at: step.at) }
        if step.before.policy != policy {
          policy = step.before.policy
          try encoder?.record(policy: policy, at: step.at)
        }
        try encoder?.record(step.event, at: step.at, directives: step.directives)
        engines.append(step.after)
        if let size = encoder?.size, size > segmentSize {
          segments.append(encoder?.drainBytes() ?? [])
          try begin(step.after, at: step.at)
        }
      } catch { preconditionFailure("\(error)") }
    }

    private func begin(_ engine: Engine, at now: Instant) throws {
      policy = engine.policy
      encoder = try JournalEncoder(
        engine, version: "test", run: "1", segment: Int64(segments.count),
        wall: WallTime(nanoseconds: 1_000_000_000_000 + now.nanoseconds), at: now)
    }

    func finished() -> [[UInt8]] { segments + [encoder?.drainBytes() ?? []] }
  }
}

extension Engine {
  /// The public part of the engine's state.
  var visible: Visible { Visible(workers: snapshots(), nextDeadline: nextDeadline) }

  struct Visible: Equatable {
    var workers: [WorkerSnapshot]
    var nextDeadline: Instant?
  }
}
