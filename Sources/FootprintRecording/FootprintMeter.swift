import FootprintTrace
import Linux

/// Measures a tree of processes, by kind of memory.
struct FootprintMeter {
  /// Bytes of file pages that processes have copied by writing to them. To tell them from other
  /// anonymous memory takes a look at each mapping, which is dear, and they hardly change: once a
  /// second does.
  private var copied: [ProcessIdentity: (bytes: Int64, at: Double)] = [:]

  /// - Parameter moment: seconds since the recording began.
  mutating func measure(
    _ tree: ProcessTree, at moment: Double
  ) throws(FootprintError) -> FootprintSample {
    var sample = FootprintSample(at: moment, anonymous: 0, processes: 0)
    var seen: [ProcessIdentity: (bytes: Int64, at: Double)] = [:]
    for process in tree.processes {
      // One that is ending has lost its memory before it is gone; all at once, so there are no halves.
      guard let footprint = try Footprint.measure(process.pid),
        footprint.resident > 0 || footprint.swapped > 0
      else { continue }
      var known = copied[process.identity]
      if known.map({ moment - $0.at >= 1 }) ?? true {
        known = (Self.copiedBytes(of: process.pid), moment)
      }
      seen[process.identity] = known
      sample.add(footprint, copied: known?.bytes ?? 0)
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
  /// The parts make up what `Footprint.footprint` says, which is what the daemon goes by. Anonymous
  /// pages that a fork shares are nobody's own, so that the kernel's `Anonymous` may be more than is
  /// dirty and private: then there is no more than that.
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
