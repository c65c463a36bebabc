import Synchronization
import WorkerKit

/// The commands that a test may send to the probe, and what the probe does on events.
final class Commands: Sendable {
  let shelf = Shelf()
  private let log: LogFile
  private let cache = MemoryCache<Int, [UInt8]>(costLimit: 64 << 20)
  private let photo = Unloadable { [UInt8](repeating: 1, count: 4 << 20) }
  /// The closures that end tasks, by the task's name.
  private let tasks = Mutex<[String: AsyncStream<Void>.Continuation]>([:])
  private let beginsTaskBeforeSleep = Atomic(false)

  init(_ log: LogFile) { self.log = log }

  func perform(_ line: String) async -> String {
    let words = line.split(separator: " ").map(String.init)
    let numbers = words.dropFirst().map { Int($0) ?? 0 }
    switch (words.first, words.count) {
    case ("fill", 4):
      shelf.fill(numbers[0], held: numbers[1], bytes: numbers[2])
      return "filled"
    case ("look", 1): return shelf.verify()
    case ("race", 3): return await shelf.race(threads: numbers[0], accesses: numbers[1])
    case ("enough", 1):
      shelf.endRace()
      return "ends"
    case ("cache", 2):
      for key in 0..<numbers[0] {
        cache.insert([UInt8](repeating: UInt8(key % 256), count: 1 << 20), for: key, cost: 1 << 20)
      }
      _ = photo.value.count
      return kept
    case ("kept", 1): return kept
    case ("task", 3): return await begin(words[1], milliseconds: numbers[1])
    case ("end", 2):
      tasks.withLock { $0.removeValue(forKey: words[1]) }?.finish()
      return "ends"
    case ("late", 1):
      beginsTaskBeforeSleep.store(true, ordering: .relaxed)
      return "will"
    default: return "what?"
    }
  }

  private var kept: String {
    "cache \(cache.count), photo \(photo.isLoaded ? "loaded" : "unloaded")"
  }

  /// Begins a task, and returns when it has begun. `milliseconds` is its limit; 0 means that it has
  /// none of its own.
  private func begin(_ name: String, milliseconds: Int) async -> String {
    let (ended, end) = AsyncStream.makeStream(of: Void.self)
    tasks.withLock { $0[name] = end }
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    Task.detached { [log] in
      await withBackgroundTask(
        named: name, limit: milliseconds > 0 ? .milliseconds(milliseconds) : nil
      ) {
        begin.finish()
        for await _ in ended {}
        log.append("\(name) \(Task.isCancelled ? "cancelled" : "done")")
      } onExpiration: {
        log.append("\(name) expired, deadline \(Worker.deadline == nil ? "unknown" : "known")")
      }
    }
    for await _ in begun {}
    return "begun"
  }

  func handle(_ event: WorkerEvent) async {
    switch event {
    case .didResume(let resumption):
      let milliseconds = resumption.asleep / .milliseconds(1)
      log.append("didResume \(Int(milliseconds)) \(resumption.cause)")
    case .willSuspend:
      log.append("willSuspend")
      guard beginsTaskBeforeSleep.exchange(false, ordering: .relaxed) else { break }
      _ = await begin("late", milliseconds: 0)
    case .willTerminate(let reason):
      log.append("willTerminate \(reason)")
      // The work takes a while: only the deadline limits it.
      try? await Task.sleep(for: .milliseconds(300))
      log.append("saved")
    case .didReceiveMemoryWarning: log.append("didReceiveMemoryWarning")
    case .pressureChanged(let level): log.append("pressure \(level.rawValue)")
    case .didEnterBackground: log.append("didEnterBackground")
    case .didEnterForeground: log.append("didEnterForeground")
    }
  }
}
