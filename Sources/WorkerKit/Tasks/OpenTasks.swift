import CWorkerKit
import Synchronization
import WorkerProtocol

/// The background tasks that have begun and not ended.
final class OpenTasks: Sendable {
  private struct Entry {
    let name: String
    let onExpiration: @Sendable () async -> Void
    var cancel: (@Sendable () -> Void)?
    var hasExpired = false
  }

  /// The entries have closures of the program, and with them references to any objects. They are
  /// released outside of the lock.
  private let entries = Mutex<[Entry]>([])
  private let connection: Connection?

  init(_ connection: Connection?) { self.connection = connection }

  var names: [String] { entries.withLock { $0.map(\.name) } }

  /// Begins a task.
  ///
  /// - Returns: the name by which the daemon knows the task. It is unique: a second task with the
  ///   same name would replace the first.
  func begin(
    _ name: String, limit: Duration?, onExpiration: @escaping @Sendable () async -> Void
  ) -> String {
    let unique = entries.withLock { entries in
      let usedNames = Set(entries.map(\.name))
      // The name is cut as the daemon would cut it, with room for a number.
      let named =
        name.isEmpty ? "task" : WorkerProtocol.shown(name, atMost: WorkerProtocol.maxText - 32)
      var unique = named
      var number = 1
      while usedNames.contains(unique) {
        number += 1
        unique = "\(named) #\(number)"
      }
      entries.append(Entry(name: unique, onExpiration: onExpiration))
      return unique
    }
    let seconds = limit.map { max(0, $0 / .seconds(1)) }
    connection?.update { session in
      session.endedTasks.removeAll { $0 == unique }
      session.tasks.append((unique, limit.map { ContinuousClock.now + $0 }))
      return [.beginTask(name: unique, limitSeconds: seconds)]
    }
    return unique
  }

  /// Sets the closure that stops the task's work. It is called at once if the task's time is
  /// already over.
  func setCancellation(of name: String, _ cancel: @escaping @Sendable () -> Void) {
    let hasExpired = entries.withLock { entries in
      guard let index = entries.firstIndex(where: { $0.name == name }) else { return true }
      entries[index].cancel = cancel
      return entries[index].hasExpired
    }
    if hasExpired { cancel() }
  }

  func end(_ name: String) {
    let ended = entries.withLock { entries -> Entry? in
      entries.firstIndex { $0.name == name }.map { entries.remove(at: $0) }
    }
    withExtendedLifetime(ended) {}
    connection?.update { session in
      session.recordEnd(ofTask: name)
      return [.endTask(name: name)]
    }
  }

  /// Ends the task's time: cancels its work and calls its handler. It returns when the handler has
  /// returned.
  func expire(_ name: String) async {
    let entry = entries.withLock { entries -> Entry? in
      guard let index = entries.firstIndex(where: { $0.name == name }),
        !entries[index].hasExpired
      else { return nil }
      entries[index].hasExpired = true
      return entries[index]
    }
    guard let entry else { return }
    // The next daemon must know that the task doesn't keep the worker awake any longer.
    connection?.update { session in
      session.recordEnd(ofTask: name)
      return []
    }
    entry.cancel?()
    await entry.onExpiration()
  }

  /// Writes the names of the tasks that are open to standard error. `occasion` is the event at
  /// which they are still open.
  func report(_ occasion: String) {
    guard let line = summary(occasion) else { return }
    let bytes = Array("\(line)\n".utf8)
    bytes.withUnsafeBytes { workerkit_print_error($0.baseAddress, Int64($0.count)) }
  }

  /// The line that names the open tasks; `nil` if there are none.
  func summary(_ occasion: String) -> String? {
    let names = names
    guard !names.isEmpty else { return nil }
    let list = names.map { "\"\($0)\"" }.joined(separator: ", ")
    return "WorkerKit: background tasks still open at \(occasion): \(list)"
  }
}

extension Worker {
  /// The names of background tasks that have begun and not ended, in the order of their begin. A
  /// name that stays here has leaked: its operation never returns.
  public var openTasks: [String] { tasks.names }
}
