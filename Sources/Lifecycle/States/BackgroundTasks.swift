import Policy

/// Unfinished work that a worker has announced. Its time runs in the background only.
struct BackgroundTask: Codable, Sendable, Equatable {
  var name: String
  var began: Instant
  var limit: Duration?
  /// When the worker got the message that the task's time is over. The task counts for a moment
  /// longer.
  var expiredAt: Instant?

  /// The limit for one worker. Further tasks aren't counted.
  static let maxOpen = 256
}

extension Engine {
  /// The time from `expireTask` until the task no longer counts.
  public static let taskExpirationGrace = Duration.seconds(1)

  mutating func recordTaskBegan(_ index: Int, name: String, limit: Duration?) {
    guard workers[index].state.isAlive else { return }
    workers[index].run.tasks.removeAll { $0.name == name }
    // A worker that forgets to end its tasks is kept awake by the ones that it has.
    guard workers[index].run.tasks.count < BackgroundTask.maxOpen else { return }
    workers[index].run.tasks.append(BackgroundTask(name: name, began: now, limit: limit))
  }

  /// For a worker in the background: reports tasks that have run out of time, and drops those that
  /// were reported a second ago.
  mutating func expireTasks(_ index: Int) {
    guard !workers[index].run.tasks.isEmpty else { return }
    let worker = workers[index]
    for position in worker.run.tasks.indices where worker.run.tasks[position].expiredAt == nil {
      let task = worker.run.tasks[position]
      guard now >= worker.end(of: task) else { continue }
      workers[index].run.tasks[position].expiredAt = now
      if isShadow(index) {
        reportImagined(index, "been asked to end its task \(task.name): out of time")
      } else {
        emit(.expireTask(worker.id, task: task.name))
      }
    }
    let isOver = { [now] (task: BackgroundTask) in
      task.expiredAt.map { now >= $0 + Self.taskExpirationGrace } ?? false
    }
    // Only if there is one to remove: a worker that is changed is examined again.
    guard worker.run.tasks.contains(where: isOver) else { return }
    workers[index].run.tasks.removeAll(where: isOver)
  }
}

extension WorkerRecord {
  func end(of task: BackgroundTask) -> Instant {
    let policyLimit = policy.background.taskLimit
    return max(task.began, since) + min(task.limit ?? policyLimit, policyLimit)
  }

  func considerTasks(_ next: inout EarliestDeadline) {
    for task in run.tasks {
      next.consider(task.expiredAt.map { $0 + Engine.taskExpirationGrace } ?? end(of: task))
    }
  }
}
