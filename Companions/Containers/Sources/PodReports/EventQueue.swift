import KubernetesAPI

/// An occurrence in a pod, for people.
public struct PodOccurrence: Hashable, Sendable {
  public var pod: PodReference
  /// The container; nil if it concerns the whole pod.
  public var container: String?
  public var kind: KubernetesEvent.Kind
  /// One word.
  public var reason: String
  public var message: String

  public init(
    _ reason: String, _ message: String, of pod: PodReference, container: String? = nil,
    kind: KubernetesEvent.Kind = .normal
  ) {
    self.reason = reason
    self.message = message
    self.pod = pod
    self.container = container
    self.kind = kind
  }
}

/// Makes few events of many occurrences. A repeated one is counted in one event, which has the
/// newest message and is sent at growing intervals. The type is pure: it decides what to send, and
/// is notified of the results.
public struct EventQueue: Sendable {
  public typealias Instant = ContinuousClock.Instant

  public struct Limits: Hashable, Sendable {
    /// The time to wait before the first repetition of an event is sent. It doubles each time.
    public var first = Duration.seconds(5)
    public var longest = Duration.seconds(300)
    /// A series that was quiet for this time starts with `first` again.
    public var quiet = Duration.seconds(600)
    /// The API removes events after an hour without a change, unless it is configured otherwise.
    public var lifetime = Duration.seconds(3300)
    /// An event that couldn't be sent within this time is lost.
    public var timeout = Duration.seconds(600)
    public var series = 1000

    public init() {}
  }

  /// An event to send.
  public struct Delivery: Hashable, Sendable {
    public var event: KubernetesEvent
    /// True if the API doesn't have the event yet.
    public var isNew: Bool
    fileprivate var key: Key
    fileprivate var covered: Int
  }

  fileprivate struct Key: Hashable, Sendable {
    var uid: String
    var container: String?
    var reason: String
  }

  private struct Series: Sendable {
    var happening: PodOccurrence
    /// The name of the API's object; nil if none was created.
    var name: String?
    /// True if the API has the object.
    var isThere = false
    var count = 0
    /// The part of `count` that wasn't sent yet.
    var unsent = 0
    var first: Int64
    var last: Int64
    var oldestUnsent: Instant
    var sent: Instant?
    var interval: Duration
    var notBefore: Instant
  }

  private var series: [Key: Series] = [:]
  private let limits: Limits
  private let node: String
  private let makeName: @Sendable (PodReference) -> String
  private var lostCount = 0

  /// - Parameter makeName: Makes names of the API's objects; tests provide their own.
  public init(
    node: String, limits: Limits = Limits(),
    makeName: @escaping @Sendable (PodReference) -> String = EventQueue.name
  ) {
    self.node = node
    self.limits = limits
    self.makeName = makeName
  }

  /// A valid name that no other event has.
  public static func name(_ pod: PodReference) -> String {
    var head = pod.name.prefix(200)
    while let last = head.last, last == "." || last == "-" { head.removeLast() }
    return "\(head).\(String(UInt64.random(in: .min ... .max), radix: 16))"
  }

  public var isEmpty: Bool { series.values.allSatisfy { $0.unsent == 0 } }

  /// - Parameter wall: The time in seconds since 1970.
  public mutating func record(_ happening: PodOccurrence, at now: Instant, wall: Int64) {
    let key = Key(
      uid: happening.pod.uid, container: happening.container, reason: happening.reason)
    if let sent = series[key]?.sent, series[key]?.unsent == 0, now - sent > limits.lifetime {
      series[key] = nil
    }
    if series[key] == nil { makeRoom() }
    var entry =
      series[key]
      ?? Series(
        happening: happening, first: wall, last: wall, oldestUnsent: now, interval: limits.first,
        notBefore: now)
    if entry.unsent == 0 { entry.oldestUnsent = now }
    entry.happening = happening
    entry.count += 1
    entry.unsent += 1
    entry.last = max(entry.last, wall)
    series[key] = entry
  }

  /// Returns the event to send now: the one that has waited for the longest time. The result is nil
  /// if there is none.
  public mutating func next(at now: Instant) -> Delivery? {
    dropOld(at: now)
    let due = series.filter { $0.value.unsent > 0 && $0.value.notBefore <= now }
    guard let (key, entry) = due.min(by: { $0.value.oldestUnsent < $1.value.oldestUnsent }) else {
      return nil
    }
    let happening = entry.happening
    // The name stays when the event is tried again: the API may have it, and only the answer was
    // lost.
    let name = entry.name ?? makeName(happening.pod)
    series[key]?.name = name
    return Delivery(
      event: KubernetesEvent(
        name: name, pod: happening.pod,
        container: happening.container, kind: happening.kind, reason: happening.reason,
        message: happening.message, count: entry.count, first: entry.first, last: entry.last,
        node: node),
      isNew: !entry.isThere, key: key, covered: entry.unsent)
  }

  /// The time at which `next` may have an event; nil if only another occurrence can cause one.
  public var nextTime: Instant? {
    series.values.filter { $0.unsent > 0 }.map(\.notBefore).min()
  }

  public mutating func delivered(_ delivery: Delivery, at now: Instant) {
    let limits = limits
    change(delivery) { entry in
      entry.isThere = true
      entry.unsent -= delivery.covered
      entry.oldestUnsent = now
      if let sent = entry.sent {
        entry.interval =
          now - sent > limits.quiet ? limits.first : min(entry.interval * 2, limits.longest)
      }
      entry.sent = now
      entry.notBefore = now + entry.interval
    }
  }

  /// Records that the API doesn't have the event any more. Another event is created, which counts
  /// what wasn't sent.
  public mutating func didDisappear(_ delivery: Delivery) {
    change(delivery) { entry in
      (entry.name, entry.isThere) = (nil, false)
      entry.count = entry.unsent
      entry.first = entry.last
    }
  }

  /// Records that the event exists because its answer was lost. Its content may be old.
  public mutating func didExist(_ delivery: Delivery) {
    change(delivery) { entry in entry.isThere = true }
  }

  /// Records that the API refuses the event, and will refuse it later, too.
  public mutating func didRefuse(_ delivery: Delivery) {
    change(delivery) { entry in entry.unsent = 0 }
  }

  /// Returns the number of occurrences that were lost since the last call.
  public mutating func drainLost() -> Int {
    defer { lostCount = 0 }
    return lostCount
  }

  // MARK: -

  private mutating func change(_ delivery: Delivery, _ body: (inout Series) -> Void) {
    guard var entry = series[delivery.key] else { return }
    body(&entry)
    series[delivery.key] = entry
  }

  private mutating func dropOld(at now: Instant) {
    for (key, entry) in series
    where entry.unsent > 0
      && now - max(entry.oldestUnsent, entry.notBefore) > limits.timeout
    {
      lostCount += entry.unsent
      series[key]?.unsent = 0
    }
  }

  private mutating func makeRoom() {
    guard series.count >= limits.series else { return }
    // An event that was sent is only forgotten: its next occurrence makes another event.
    let oldest = series.min { ($0.value.unsent, $0.value.last) < ($1.value.unsent, $1.value.last) }
    guard let oldest else { return }
    lostCount += oldest.value.unsent
    series[oldest.key] = nil
  }
}
