import Lifecycle
import Policy

/// The processes behind a worker of a fleet.
struct FleetWorker {
  enum Body { case absent, starting, running, frozen, evicted }

  let id: WorkerID
  /// The footprint after warm-up, in bytes.
  let footprint: Int64
  let leak: Int64
  let launch: Duration
  let profile: WorkerProfile

  var body = Body.absent
  /// The bytes that it holds now, and those that it held before it was hibernated.
  var resident: Int64 = 0
  var evicted: Int64 = 0
  var image: Int64 = 0
  var uses = 0
  var runsSince: Int64 = 0
  /// Counts launches, so that news of an earlier life is dropped in a later one.
  var life: Int32 = 0
  /// Arrivals that wait until it runs, and what they found.
  var waiting: [Waiting] = []
  /// How often the kernel ended it since it last served a use.
  var kernelKills = 0
  var lastSign: Int64 = .min / 2
  var busyUntil: Int64 = 0
  /// Uses under way that are long enough to be declared as a task.
  var longUses = 0
  var account = FleetAccount()
  /// The account has the time until then.
  var accountedUntil: Int64 = 0

  struct Waiting {
    var at: Int64
    var found: FleetReport.Found
    var duration: Int32
    /// No client waits.
    var isOwnWork = false
  }

  /// A client that tries again waits for 1 s, and twice as long each time, at most a minute: else a machine with too
  /// little memory would do nothing but start what it can't keep.
  var retryDelay: Int64 { min(1 << min(Int64(kernelKills), 6), 60) * 1_000_000_000 }

  /// What it holds and saves, until now.
  mutating func addElapsedTime(at now: Int64) {
    let time = Double(now - accountedUntil) / 1e9
    accountedUntil = now
    account.byteSeconds += Double(resident) * time
    if body == .evicted { account.savedByteSeconds += Double(max(0, evicted - resident)) * time }
  }
}

/// What one worker of a fleet held and cost.
public struct FleetAccount: Sendable, Hashable {
  public var byteSeconds = 0.0
  /// What hibernation saved.
  public var savedByteSeconds = 0.0
  /// Resumes, for a client or for its own timers.
  public var wakes = 0
  /// The time that its clients waited, for resumes and launches.
  public var waitSeconds = 0.0
  public var writtenBytes: Int64 = 0

  public init() {}
}

/// What the simulation waits for.
struct FleetNews {
  enum What {
    case event(Event)
    /// A long use ends.
    case useEnds
    /// A use that waited for a worker that the kernel ended tries again.
    case retry
    /// A reading of the memory.
    case sample
  }
  /// −1: of the machine.
  var worker: Int32
  var life: Int32
  var what: What
}

/// News, the earliest first; of news at the same time, the one that was added first. The heap holds
/// times and places only: what moves in it is small, and the news stays in place.
struct NewsQueue {
  private struct Entry {
    var at: Int64
    var order: UInt32
    var place: Int32
  }

  private var heap: [Entry] = []
  private var news: [FleetNews?] = []
  private var free: [Int32] = []
  private var count: UInt32 = 0

  var first: Int64? { heap.first?.at }

  mutating func add(at: Int64, worker: Int32, life: Int32, what: FleetNews.What) {
    count &+= 1
    let place = free.popLast() ?? Int32(news.count)
    if Int(place) == news.count { news.append(nil) }
    news[Int(place)] = FleetNews(worker: worker, life: life, what: what)
    heap.append(Entry(at: at, order: count, place: place))
    var child = heap.count - 1
    while child > 0, isBefore(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func popFirst() -> FleetNews? {
    guard let first = heap.first else { return nil }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink()
    }
    free.append(first.place)
    return news[Int(first.place)].take()
  }

  private mutating func sink() {
    var place = 0
    while true {
      let left = 2 * place + 1
      guard left < heap.count else { return }
      let right = left + 1
      let child = right < heap.count && isBefore(right, left) ? right : left
      guard isBefore(child, place) else { return }
      heap.swapAt(child, place)
      place = child
    }
  }

  private func isBefore(_ one: Int, _ other: Int) -> Bool {
    (heap[one].at, heap[one].order) < (heap[other].at, heap[other].order)
  }
}
