import Lifecycle
import Policy

/// The simulated processes of a worker in a fleet.
struct FleetWorker {
  enum Body { case absent, starting, running, frozen, evicted }

  let id: WorkerID
  /// The footprint after warm-up, in bytes.
  let footprint: Int64
  let leak: Int64
  let launch: Duration
  let profile: WorkerProfile

  var body = Body.absent
  /// The bytes of memory that it uses now.
  var resident: Int64 = 0
  /// The bytes of memory that it used before it was hibernated.
  var evicted: Int64 = 0
  var image: Int64 = 0
  var uses = 0
  var runsSince: Int64 = 0
  /// The number of launches, by which news of an earlier run is recognized and dropped.
  var life: Int32 = 0
  /// The uses that wait until the worker runs, and the worker's state when they arrived.
  var waiting: [Waiting] = []
  /// How often the OOM killer has ended it since it last served a use.
  var kernelKills = 0
  var lastSign: Int64 = .min / 2
  var busyUntil: Int64 = 0
  /// The number of uses in progress that are long enough to be declared as a task.
  var longUses = 0
  var account = FleetAccount()
  /// The moment until which the time has been added to the account.
  var accountedUntil: Int64 = 0

  struct Waiting {
    var at: Int64
    var found: FleetReport.Found
    var duration: Int32
    /// True if no client waits, because it is the worker's own work.
    var isOwnWork = false
  }

  /// The time after which a client tries again: 1 s, twice as long each time, and at most a minute.
  /// Otherwise a machine with too little memory would only start workers that it can't keep.
  var retryDelay: Int64 { min(1 << min(Int64(kernelKills), 6), 60) * 1_000_000_000 }

  /// Adds the memory that was used and saved until now to the account.
  mutating func addElapsedTime(at now: Int64) {
    let time = Double(now - accountedUntil) / 1e9
    accountedUntil = now
    account.byteSeconds += Double(resident) * time
    if body == .evicted { account.savedByteSeconds += Double(max(0, evicted - resident)) * time }
  }
}

/// The memory and the costs of one worker of a fleet.
public struct FleetAccount: Sendable, Hashable {
  /// The integral over time of the memory that it used.
  public var byteSeconds = 0.0
  /// The integral over time of the memory that hibernation saved.
  public var savedByteSeconds = 0.0
  /// The number of resumes, for clients and for its own timers.
  public var wakes = 0
  /// The time in seconds that its clients waited for resumes and launches.
  public var waitSeconds = 0.0
  /// The size of all images that were written for it.
  public var writtenBytes: Int64 = 0

  public init() {}
}

/// A step of the simulation that is due at some time.
struct FleetNews {
  enum What {
    case event(Event)
    /// A long use ends.
    case useEnds
    /// A use tries again, after the kernel ended the worker for which it waited.
    case retry
    /// A reading of the memory.
    case sample
  }
  /// The number of the worker. −1: the machine.
  var worker: Int32
  var life: Int32
  var what: What
}

/// The steps that are due, the earliest first. Steps of the same time are in the order in which
/// they were added. The heap holds only times and indexes: its entries are small, and the steps
/// stay where they are.
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
