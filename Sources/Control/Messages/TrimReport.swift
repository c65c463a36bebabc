/// The trims of a worker in its present run, and how much of the trimmed memory it needed again.
/// Sizes are in bytes, times in seconds.
public struct TrimReport: Codable, Hashable, Sendable {
  /// The code is `trimmed`, `filled`, `lost` (all memory of the last trim came back at once) or
  /// `not_trimmed`, by what happened last.
  public var code: String
  public var text: String
  /// The operation that is under way, `trim` or `fill`.
  public var underWay: String?
  /// The part of the footprint that is in swap, or in the image of a trim. The kernel may have
  /// moved memory to swap by itself.
  public var swapped: Int64
  /// The number of trims that moved memory.
  public var trims: Int
  /// The last trim; nil if there was none, or if its memory was moved after it, as by a fill.
  public var last: Last?
  /// How much of the last trim's memory has come back.
  public var cameBack: Int64?
  /// The time after the last trim within which more than a third of its memory came back.
  public var cameBackSeconds: Double?
  /// The time until the policy trims it, at the earliest; nil if more than time prevents it.
  public var nextSeconds: Double?
  /// What prevents a trim by the policy now, in the first place.
  public var reason: CodedText?

  public struct Last: Codable, Hashable, Sendable {
    public var secondsAgo: Double
    /// The part of the footprint that was in RAM before the trim.
    public var residentBefore: Int64
    /// The part of the footprint that was in RAM right after the trim.
    public var residentAfter: Int64
    /// The part of the footprint that was in swap, or in the trim's image, right after the trim.
    public var swapped: Int64
    /// How much of `swapped` was in the image; nil if the trim wrote none.
    public var inImage: Int64?
    /// The duration of the trim. The worker ran meanwhile.
    public var seconds: Double
    /// The longest time for which the worker stood still.
    public var stoppedSeconds: Double

    public init(
      secondsAgo: Double, residentBefore: Int64, residentAfter: Int64, swapped: Int64,
      inImage: Int64? = nil, seconds: Double, stoppedSeconds: Double
    ) {
      self.secondsAgo = secondsAgo
      self.residentBefore = residentBefore
      self.residentAfter = residentAfter
      self.swapped = swapped
      self.inImage = inImage
      self.seconds = seconds
      self.stoppedSeconds = stoppedSeconds
    }
  }

  public init(code: String, text: String, swapped: Int64, trims: Int) {
    self.code = code
    self.text = text
    self.swapped = swapped
    self.trims = trims
  }
}

extension WorkerReport {
  /// The sentence about its trims, escaped; nil if the worker doesn't run and has all memory in
  /// RAM.
  var trimText: String? {
    trim.flatMap { trim in
      trim.swapped > 0 || ["foreground", "background"].contains(state) ? escaped(trim.text) : nil
    }
  }
}
