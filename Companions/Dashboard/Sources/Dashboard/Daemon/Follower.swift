/// Polls the daemon while a page is open, and passes its answers on. While no page is open, it asks
/// nothing and has no connection.
struct Follower: Sendable {
  let hub: Hub
  private let link: DaemonLink
  private let events: EventLink
  /// One thread for each link.
  private let pool = BlockingPool(threads: 2)

  init(hub: Hub, path: String, isNamed: Bool) {
    self.hub = hub
    link = DaemonLink(path: path, isNamed: isNamed)
    events = EventLink(path: path, isNamed: isNamed)
  }

  /// Runs until the task is cancelled.
  func run() async {
    await withTaskGroup { group in
      group.addTask { await poll() }
      group.addTask { await follow() }
    }
  }

  private func poll() async {
    while !Task.isCancelled {
      guard hub.hasViewers else {
        link.close()
        await hub.wakeup.wait()
        continue
      }
      let wishes = hub.wishes
      // The pool is never closed; a failure would only mean that there are no updates.
      try? await pool.run { publish(link.poll(wishes)) }
      // Many changes in a short time are handled as one.
      try? await Task.sleep(for: .milliseconds(150))
      await hub.wakeup.wait(within: .milliseconds(850))
    }
  }

  private func publish(_ outcome: DaemonLink.Outcome) {
    switch outcome {
    case .answered(let answer):
      for worker in hub.unmeasured(in: answer) {
        hub.record(FootprintKinds.measure(worker), of: worker.name)
      }
      hub.publish(answer)
    case .absent(let problem): hub.publish(problem: problem, isSlow: false)
    case .slow(let time):
      let seconds = time / .seconds(1)
      hub.publish(
        problem: "the daemon hasn't answered for \(Int(seconds.rounded())) s", isSlow: true)
    }
  }

  private func follow() async {
    while !Task.isCancelled {
      guard hub.hasViewers else {
        events.close()
        await hub.eventWakeup.wait()
        continue
      }
      // The pool is never closed; a failure would only mean that there are no events.
      let happened = try? await pool.run { events.next() }
      if let happened = happened ?? nil {
        hub.publish(happened)
      } else {
        // Only this task waits here; the next page that is opened ends the wait.
        await hub.eventWakeup.wait(within: .seconds(1))
      }
    }
  }
}
