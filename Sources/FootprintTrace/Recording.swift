import Linux

/// A worker's footprint over time, and the events of that time.
public struct Recording: Hashable, Sendable {
  public var header: RecordingHeader
  /// The samples in the order of time; never empty. Each value is valid until the next sample.
  public var samples: [FootprintSample]
  /// The marks in the order of time.
  public var marks: [FootprintMark]
  /// nil: the recording was cut off (`kill -9`, a full disk), or still runs.
  public var end: RecordingEnd?
  /// True if the last line was incomplete. It is left out.
  public var lostItsTail = false

  init(
    header: RecordingHeader, samples: [FootprintSample], marks: [FootprintMark] = [],
    end: RecordingEnd? = nil
  ) {
    self.header = header
    self.samples = samples
    self.marks = marks.sorted { $0.at < $1.at }
    self.end = end
  }

  /// Seconds from the beginning of the recording to its end.
  public var seconds: Double { max(end?.at ?? 0, samples.last?.at ?? 0) }

  /// Calls `body` with each sample and the time in seconds for which it was valid. The first sample
  /// counts from the beginning.
  public func forEachSpan(_ body: (FootprintSample, Double) -> Void) {
    for (index, sample) in samples.enumerated() {
      let until = index + 1 < samples.count ? samples[index + 1].at : seconds
      body(sample, max(0, until - (index == 0 ? 0 : sample.at)))
    }
  }

  /// Returns the index of the last sample at or before a moment, or of the first sample if there is
  /// none.
  func sampleIndex(at moment: Double) -> Int {
    max(0, samples.partitioningIndex { $0.at > moment } - 1)
  }

  /// Returns the largest of the samples that are valid at some time from `start` on and before
  /// `end`.
  func largest(from start: Double, to end: Double) -> FootprintSample? {
    guard start <= seconds, !samples.isEmpty else { return nil }
    var best = samples[sampleIndex(at: start)]
    for sample in samples[(sampleIndex(at: start) + 1)...] {
      if sample.at >= end { break }
      if sample.footprint > best.footprint { best = sample }
    }
    return best
  }

  /// Returns the worker's state at a moment, as far as the marks show it.
  func state(at moment: Double) -> String? {
    marks.last { $0.kind == .state && $0.at <= moment }?.to
      ?? marks.first { $0.kind == .state }?.from ?? header.state
  }
}
