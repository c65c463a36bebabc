import Linux

/// Measures a tree of processes, by kind of memory.
struct ProcessTreeMeter {
  /// Bytes of file pages that processes have copied by writing to them. Each mapping must be read
  /// to distinguish them from other anonymous memory, which is expensive. They hardly change, so
  /// they are measured once a second.
  private var copied: [ProcessIdentity: (bytes: Int64, at: Double)] = [:]

  /// - Parameter moment: seconds since the recording began.
  mutating func measure(
    _ tree: ProcessTree, at moment: Double
  ) throws(FootprintError) -> FootprintSample {
    var sample = FootprintSample(at: moment, anonymous: 0, processes: 0)
    var seen: [ProcessIdentity: (bytes: Int64, at: Double)] = [:]
    for process in tree.processes {
      // An ending process loses its memory before it disappears, and loses all of it at once. It is
      // left out then, so no partial value is measured.
      guard let footprint = try Footprint.measure(process.pid),
        footprint.resident > 0 || footprint.swapped > 0
      else { continue }
      var measured = copied[process.identity]
      if measured.map({ moment - $0.at >= 1 }) ?? true {
        measured = (Self.copiedBytes(of: process.pid), moment)
      }
      seen[process.identity] = measured
      sample.add(footprint, copied: measured?.bytes ?? 0)
    }
    copied = seen
    return sample
  }

  private static func copiedBytes(of pid: Int32) -> Int64 {
    // A process that has ended has none.
    let mappings = (try? MemoryMapping.all(of: pid)) ?? []
    return mappings.reduce(0) {
      $0 + ($1.hasFile && !$1.shared ? Int64(clamping: $1.anonymous) : 0)
    }
  }
}

extension FootprintSample {
  /// Adds the memory of one process. The sum of the kinds is `Footprint.footprint`, the number that
  /// the daemon uses. Anonymous pages that a fork shares belong to no single process, so the
  /// kernel's `Anonymous` may be more than the private dirty memory. Then the private dirty memory
  /// is the limit.
  fileprivate mutating func add(_ footprint: Footprint, copied: Int64) {
    let dirty = footprint.footprint - footprint.swapped
    let copied = min(copied, footprint.anonymous, dirty)
    let anonymous = min(footprint.anonymous - copied, dirty - copied)
    self.anonymous += anonymous
    self.copied += copied
    shared += dirty - copied - anonymous
    swapped += footprint.swapped
    clean += footprint.reclaimable
    processes += 1
  }
}
