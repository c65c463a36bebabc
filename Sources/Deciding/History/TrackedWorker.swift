import Lifecycle
import Policy
import Simulation

/// One worker while a journal is read. Times are in nanoseconds of the history.
struct TrackedWorker {
  var profile: WorkerProfile?
  var state = WorkerState.terminated
  /// The last footprint while it was in memory, in bytes.
  private(set) var footprint: Int64 = 0
  /// What it holds now, in bytes.
  private(set) var held: Int64 = 0
  /// How much of it is out of RAM, in swap or in the image of a trim, in bytes.
  private(set) var swapped: Int64 = 0
  /// The last trim, until something else has moved its memory.
  private var trim: ObservedTrim?
  var start = TraceWorker.Start.absent
  /// Whether it had processes or was used in the time of the history.
  var wasSeen = false
  /// When it isn't known any more whether the worker is alive, because another daemon began.
  var lostAt: Int64?
  var sleptIn: WorkerState?
  /// When an operation began whose outcome hasn't come.
  var began: [Operation: Int64] = [:]
  var launches = MeasuredCosts.Mean()
  private var growth = Growth()
  private var until: Int64 = 0
  private var span: Span?
  /// Its uses in the history, and when it ended.
  private(set) var uses: [Trace.Use] = []
  private(set) var ends: [Int64] = []

  enum Operation: Hashable { case launch, suspend, terminate }

  /// Signs of use that follow each other closely.
  private struct Span {
    var began: Int64
    var ended: Int64
    var isSelfInitiated: Bool
  }

  /// A longer pause between signs ends a use: a busy worker is sampled every few seconds. In
  /// nanoseconds.
  static let pause: Int64 = 5_000_000_000
  /// A longer use is continued by further ones, so that a long one counts as activity until its
  /// end. In milliseconds.
  static let longest: Int64 = 60_000

  // MARK: uses

  mutating func recordUse(selfInitiated isSelfInitiated: Bool, at now: Int64) {
    wasSeen = true
    if var open = span, now - open.ended < Self.pause, isSelfInitiated || !open.isSelfInitiated {
      open.ended = now
      span = open
      return
    }
    endUse()
    span = Span(began: now, ended: now, isSelfInitiated: isSelfInitiated)
  }

  /// Ends the current use, and records it as uses of at most `longest`.
  mutating func endUse() {
    guard let open = span else { return }
    span = nil
    var at = open.began / 1_000_000
    let end = open.ended / 1_000_000
    var count: Int32 = 1
    repeat {
      let duration = min(end - at, Self.longest)
      uses.append(
        Trace.Use(
          at: at, worker: 0, duration: Int32(clamping: duration), count: count,
          isSelfInitiated: open.isSelfInitiated))
      count = 0
      at += Self.longest
    } while at < end
  }

  mutating func end(at now: Int64) {
    endUse()
    ends.append(now)
  }

  // MARK: memory

  /// Adds the time since the last call, at the footprint that the worker had. Returns byte-seconds.
  mutating func addElapsedTime(at now: Int64) -> (held: Double, saved: Double) {
    let time = Double(now - until) / 1e9
    until = now
    guard state.isAlive, time > 0 else { return (0, 0) }
    if state.isInMemory, footprint > 0 { growth.add(footprint, at: now, seconds: time) }
    // The kernel moves memory to swap by itself under any policy.
    let trimmed = trim == nil ? 0 : swapped
    let saved = Double(state == .hibernated ? max(0, footprint - held) : trimmed)
    return (Double(held) * time, saved * time)
  }

  mutating func setFootprint(_ bytes: Int64) {
    swapped = min(swapped, max(0, bytes))
    held = bytes - swapped
    trim?.observe(footprint: bytes, swapped: swapped)
    if state.isInMemory, bytes > 0 { footprint = bytes }
  }

  /// A measurement of the footprint follows.
  mutating func setSwapped(_ bytes: Int64) { swapped = max(0, bytes) }

  /// Records what is out of RAM in a checkpoint, and the last trim if its memory is still there.
  mutating func open(swapped: Int64, _ last: TrimResult?) {
    setSwapped(swapped)
    trim = last.map(ObservedTrim.init)
  }

  mutating func trimmed(_ result: TrimResult) {
    swapped = max(0, result.swapped.bytes)
    setFootprint((result.residentAfter + result.swapped).bytes)
    trim = ObservedTrim(result)
  }

  mutating func hibernated(before: Int64, after: Int64) {
    footprint = before
    held = after
    swapped = 0
  }

  mutating func woke() { held = max(held, footprint - swapped) }

  /// Ends the observation of the last trim: something else moves its memory now. Returns that trim.
  mutating func endTrim() -> ObservedTrim? {
    defer { trim = nil }
    return trim
  }

  mutating func setState(_ new: WorkerState, at now: Int64) {
    if new == .terminated {
      held = 0
      swapped = 0
      began = [:]
    }
    if state == .terminated, new != .terminated { growth.begin(at: now) }
    state = new
    if new.isAlive { wasSeen = true }
  }

  /// Omits the time until `now` from the history.
  mutating func skip(to now: Int64) {
    until = now
    growth.begin(at: now)
  }

  func worker(named name: String, launch: Double) -> TraceWorker {
    let (size, leak) = growth.line ?? (Double(footprint), 0)
    return TraceWorker(
      name: name, footprint: ByteCount(max(65_536, Int64(size))), launch: .seconds(launch),
      leak: ByteCount(Int64(leak)), importance: profile?.importance ?? 0, start: start)
  }
}

/// A footprint over time: a line for each life, and one slope for all.
private struct Growth {
  /// Sums over lives that have ended: first those of squared deviations, then those of all values.
  private var (xx, xy, yy) = (0.0, 0.0, 0.0)
  private var (weights, x, y, longest) = (0.0, 0.0, 0.0, 0.0)
  private var life = Life()

  private struct Life {
    var began: Int64 = 0
    var (w, x, y, xx, xy, yy, last) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
  }

  mutating func begin(at now: Int64) {
    closeLife()
    life = Life()
    life.began = now
  }

  /// Adds a measurement.
  ///
  /// - Parameter seconds: the time that the worker had this footprint.
  mutating func add(_ footprint: Int64, at now: Int64, seconds: Double) {
    let hours = Double(now - life.began) / 3.6e12 - seconds / 7200
    let (w, y) = (seconds, Double(footprint))
    life.w += w
    life.x += w * hours
    life.y += w * y
    life.xx += w * hours * hours
    life.xy += w * hours * y
    life.yy += w * y * y
    life.last = hours
  }

  private mutating func closeLife() {
    guard life.w > 0 else { return }
    xx += life.xx - life.x * life.x / life.w
    xy += life.xy - life.x * life.y / life.w
    yy += life.yy - life.y * life.y / life.w
    weights += life.w
    x += life.x
    y += life.y
    longest = max(longest, life.last)
  }

  /// The footprint at the beginning of a life, and the bytes that it gains in an hour.
  var line: (size: Double, leak: Double)? {
    var all = self
    all.closeLife()
    guard all.weights > 0 else { return nil }
    let mean = all.y / all.weights
    guard all.longest >= 1, all.xx > 0, all.yy > 0 else { return (mean, 0) }
    let slope = all.xy / all.xx
    let gained = slope * all.longest
    // A smaller gain is usual variation.
    guard gained > max(2_097_152, mean / 10), all.xy * all.xy > all.xx * all.yy / 2 else {
      return (mean, 0)
    }
    return (max(mean / 10, mean - slope * all.x / all.weights), slope)
  }
}

extension WorkerState {
  fileprivate var isInMemory: Bool {
    switch self {
    case .launching, .foreground, .background, .suspending, .suspended: true
    case .hibernating, .hibernated, .resuming, .terminating, .terminated: false
    }
  }
}
