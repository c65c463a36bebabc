import AsyncHTTPClient
import ContainerPlan
import Control
import Linux
import PodReports

/// Watches runtimes, and makes the daemon adopt the containers whose labels ask for it.
public actor ContainerWatch {
  private let settings: WatchSettings
  private let engines: [any RuntimeClient]
  private let daemon: AdoptingDaemon
  private let log: @Sendable (String) -> Void
  /// The reporter; nil if the Kubernetes API isn't used.
  private let reporter: PodReporter?
  private var ledger = AdoptionLedger()
  /// The last list of each runtime that answers.
  private var containers: [String: [Container]] = [:]
  private var asked: [String: ContinuousClock.Instant] = [:]
  /// The last logged problem of each runtime and of the daemon: it isn't logged again.
  private var troubles: [String: String] = [:]
  private var isManualNoted = false

  public init(
    _ settings: WatchSettings, http: HTTPClient, reporter: PodReporter? = nil,
    log: @escaping @Sendable (String) -> Void
  ) {
    self.init(
      settings, engines: settings.runtimes.map { $0.client(http) }, reporter: reporter, log: log)
  }

  /// Creates a watch with a test's runtimes.
  init(
    _ settings: WatchSettings, engines: [any RuntimeClient], reporter: PodReporter?,
    log: @escaping @Sendable (String) -> Void
  ) {
    self.settings = settings
    self.engines = engines
    self.reporter = reporter
    self.log = log
    daemon = AdoptingDaemon(path: settings.socket, isNamed: settings.isNamed)
  }

  /// Returns whether a process has a mount namespace of its own, as a container's first process
  /// has. This program may run in a container as well, where process 1 is the machine's.
  public static func hasSeparateMounts(_ pid: Int32) -> Bool? {
    guard let its = readLink("/proc/\(pid)/ns/mnt") else { return nil }
    return its != readLink("/proc/self/ns/mnt") && its != readLink("/proc/1/ns/mnt")
  }

  /// Returns the start time of a process; nil if it has ended.
  static func startTime(_ pid: Int32) -> UInt64? {
    // A process that can't be read isn't adopted.
    try? ProcessStat.read(pid).startTime
  }

  // MARK: for ever

  /// Watches until the task is cancelled.
  public func run() async {
    let (wakeups, wakeup) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    await withTaskGroup { group in
      for engine in engines {
        group.addTask { await self.follow(engine) { wakeup.yield() } }
      }
      if let reporter {
        group.addTask { await reporter.run() }
        let events = DaemonEvents(path: settings.socket, isNamed: settings.isNamed)
        group.addTask { await events.follow { await reporter.happened($0) } }
      }
      group.addTask { [interval = settings.daemonInterval] in
        while !Task.isCancelled {
          wakeup.yield()
          // If the task is cancelled, the loop ends.
          try? await Task.sleep(for: interval)
        }
      }
      for await _ in wakeups {
        if Task.isCancelled { break }
        _ = await poll()
      }
      group.cancelAll()
    }
  }

  private func follow(_ engine: any RuntimeClient, wake: @escaping @Sendable () -> Void) async {
    var delays = settings.retry
    while !Task.isCancelled {
      let began = ContinuousClock.now
      do throws(EngineError) {
        try await engine.followEvents {
          await self.didFollow(engine.runtime)
          wake()
        } changed: {
          await self.didChange(engine.runtime)
          wake()
        }
      } catch {
        if Task.isCancelled { return }
        // Events in the meantime are lost.
        didChange(engine.runtime)
        logChange("events \(engine.runtime.name)", trouble: "\(engine.runtime): \(error)")
      }
      // If the task is cancelled, the loop ends.
      try? await Task.sleep(for: delays.next(after: ContinuousClock.now - began))
    }
  }

  /// Handles the begin of a stream. Earlier events are unknown.
  private func didFollow(_ runtime: Runtime) {
    logChange("events \(runtime.name)", trouble: nil, relief: "\(runtime): its events are followed")
    didChange(runtime)
  }

  private func didChange(_ runtime: Runtime) { asked[runtime.name] = nil }

  // MARK: one poll

  /// Asks the runtimes and the daemon, and does what follows. The result is false if something
  /// wasn't done; then it was logged.
  public func poll() async -> Bool {
    var isDone = true
    let began = ContinuousClock.now
    for engine in engines where isDue(engine.runtime) {
      if await !list(engine) { isDone = false }
    }
    guard let state = await askDaemon() else {
      await reporter?.daemonDidDisconnect()
      return false
    }
    dropEnded()
    await reporter?.looked(
      PodView.all(of: containers.values.joined(), workers: state.workers),
      isComplete: containers.count == engines.count, began: began)
    let plan = ledger.plan(
      .init(
        containers: containers,
        workers: state.workers.map { ManagedWorker(name: $0.name, pid: $0.pid) },
        daemon: state.pid))
    for line in plan.notes { log(line) }
    for action in plan.actions {
      if await !perform(action, state.pid) { isDone = false }
    }
    return isDone && plan.notes.isEmpty
  }

  /// Drops containers that have ended since their runtime was asked, also if another process has
  /// the pid now. Otherwise a worker that the daemon has just removed would count as released by
  /// the user.
  private func dropEnded() {
    for (name, list) in containers {
      let running = list.filter { container in
        settings.isContained(container.pid) != nil && container.startTime != nil
          && container.startTime == Self.startTime(container.pid)
      }
      if running.count == list.count { continue }
      containers[name] = running
      asked[name] = nil
    }
  }

  private func isDue(_ runtime: Runtime) -> Bool {
    guard let last = asked[runtime.name] else { return true }
    return ContinuousClock.now - last >= settings.runtimeInterval
  }

  /// Lists a runtime's containers. The result is false if it doesn't answer; nothing is decided
  /// about its containers until it does.
  private func list(_ engine: any RuntimeClient) async -> Bool {
    let name = engine.runtime.name
    // The time is recorded before the answer: an event that arrives meanwhile causes another
    // request.
    asked[name] = .now
    do throws(EngineError) {
      var listed: [Container] = []
      for var container in try await engine.containers() {
        // The container has ended since it was listed.
        guard let isContained = settings.isContained(container.pid) else { continue }
        container.isContained = isContained
        listed.append(container)
      }
      containers[name] = listed
      logChange(name, trouble: nil, relief: "\(engine.runtime) answers")
      return true
    } catch {
      containers[name] = nil
      asked[name] = nil
      logChange(name, trouble: "\(engine.runtime): \(error)")
      return false
    }
  }

  private func askDaemon() async -> AdoptingDaemon.DaemonState? {
    do throws(ControlError) {
      let state = try await daemon.poll()
      logChange("", trouble: nil, relief: "the daemon answers at \(escaped(settings.socket))")
      if state.isManual, !isManualNoted {
        isManualNoted = true
        log(
          "the daemon's policy has `foreground.mode: manual`: a container is suspended soon after "
            + "each wake, even "
            + "while it is used; use a policy with `foreground.mode: activity`, such as `policy: "
            + "server`"
        )
      }
      return state
    } catch {
      logChange("", trouble: "\(error)")
      return nil
    }
  }

  private func perform(_ action: AdoptionLedger.Action, _ pid: Int32) async -> Bool {
    switch action {
    case .adopt(let wish, let name): return await adopt(wish, as: name, pid)
    case .release(let name, let container):
      if settings.isDryRun {
        log("\(container.title): \(name) would be released")
        return true
      }
      do throws(ControlError) {
        let response = try await daemon.release(name)
        log("\(container.title): the container has ended: \(escaped(response.text))")
        return response.result == .done
      } catch {
        log("\(container.title): can't be released: \(error)")
        return false
      }
    }
  }

  private func adopt(_ wish: Wish, as name: String, _ pid: Int32) async -> Bool {
    let container = wish.container
    if settings.isDryRun {
      log("\(container.title): would be adopted as \(name), pid \(container.pid): \(wish.terms)")
      return true
    }
    do throws(ControlError) {
      let response = try await daemon.adopt(
        wish, as: name, wakingWith: ledger.peers(of: container))
      guard response.result == .done else {
        await logRefusal(wish, escaped(response.text))
        return false
      }
      log(ledger.didAdopt(wish, as: name, by: pid))
      if let member = container.member {
        await reporter?.didAdopt(
          member.reference, container: member.container, as: name, terms: wish.terms)
      }
      if let every = container.healthInterval, wish.healthChecks.isEmpty {
        log(
          "\(container.title): its health check runs every \(durationText(every)), and wakes it if "
            + "it connects "
            + "to it")
      }
      return true
    } catch {
      await logRefusal(wish, "\(error)")
      return false
    }
  }

  /// Logs once that a container wasn't adopted.
  private func logRefusal(_ wish: Wish, _ reason: String) async {
    guard let line = ledger.didRefuse(wish, reason) else { return }
    log(line)
    if let member = wish.container.member {
      await reporter?.didRefuse(member.reference, container: member.container, reason: reason)
    }
  }

  /// Logs only a change. The first answer isn't logged.
  private func logChange(_ subject: String, trouble: String?, relief: String = "") {
    guard troubles[subject] != trouble else { return }
    troubles[subject] = trouble
    log(trouble ?? relief)
  }
}

extension Runtime: CustomStringConvertible {
  public var description: String { "\(name) at \(escaped(socket))" }
}
