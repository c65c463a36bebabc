import Lifecycle
import Linux
import Policy

/// Shares of time stalled on memory, from the kernel's running totals: the averages that it offers
/// itself reach back ten seconds at least, and a short spike would drown in them.
struct StallMeter {
  private typealias Totals = (some: UInt64, full: UInt64, at: Instant)
  /// The latest last; the first is the newest that is a whole window old, where there is one.
  private var history: [Totals] = []

  /// Percent of the window that ends now; `nil` the first time, and without PSI.
  mutating func read(at now: Instant, window: Duration) -> (some: Double, full: Double)? {
    guard let stall = try? PressureStall.read() else { return nil }
    return add(
      some: stall.some.totalMicroseconds, full: stall.full?.totalMicroseconds ?? 0, at: now,
      window: window)
  }

  /// The pure part. What came before the first look isn't known, and counts as no stall.
  mutating func add(
    some: UInt64, full: UInt64, at now: Instant, window: Duration
  ) -> (some: Double, full: Double)? {
    history.append((some, full, now))
    let whole = history.lastIndex { $0.at + window <= now } ?? 0
    history.removeFirst(whole)
    guard history.count > 1, let first = history.first, now > first.at else { return nil }
    let span = Double(max(now - first.at, window).wholeNanoseconds) / 1000
    func percent(_ before: UInt64, _ after: UInt64) -> Double {
      min(100, max(0, Double(after &- before) / span * 100))
    }
    return (percent(first.some, some), percent(first.full, full))
  }
}

extension Daemon {
  /// The kernel calls as soon as a stall threshold is passed, where it lets us have triggers.
  func watchPressure() {
    for (trigger, watch) in triggers { loop.unwatch(trigger.descriptor, watch) }
    triggers = []
    guard engine.policy.memory == .host else { return }
    for level in PressureLevel.allCases {
      let condition = engine.policy.pressure[level]
      for (kind, stall) in [
        (PressureTrigger.Kind.some, condition?.someStall), (.full, condition?.fullStall),
      ] {
        guard let stall else { continue }
        openTrigger(kind, stall, level)
      }
    }
  }

  private func openTrigger(_ kind: PressureTrigger.Kind, _ stall: Stall, _ level: PressureLevel) {
    do {
      let threshold = Duration.nanoseconds(
        Int64(Double(stall.window.wholeNanoseconds) * stall.percent / 100))
      // Read before the trigger is there: it may be sooner.
      let total = (try? PressureStall.read())?.totalMicroseconds(kind)
      var check = total.map { TriggerCheck(stall: threshold, total: $0) }
      let trigger = try PressureTrigger(kind, stall: threshold, window: stall.window)
      let watch = try loop.watch(trigger.descriptor, .priority) { [unowned self] _ in
        let total = (try? PressureStall.read())?.totalMicroseconds(kind)
        if total.flatMap({ check?.confirms($0) }) ?? true { feed(.stalled(level)) }
        takeReading()
      }
      triggers.append((trigger, watch))
    } catch {
      log(.notice, "sampling memory stalls once a second instead of being called: \(error)")
    }
  }

  func sampleRegularly() {
    takeReading()
    latches?.take()
    // Sleepers, most of them, cost nothing: what is frozen doesn't change.
    let running = workers.values.filter { engine.state(of: $0.id)?.runs == true }
    let scan = scanForWorkers(running)
    for runtime in running { sample(runtime, scan) }
    samples += 1
    saveMemoryWhenDue()
    // Midnight, and what others write to the disk.
    if samples % 60 == 1 { takeDiskReading() }
    if EventLoop.now - lastSweep > .seconds(3600) {
      lastSweep = EventLoop.now
      hibernation.dropIdleBases(outdated: true)
    }
    let next = loop.after(interval(running.isEmpty)) { [unowned self] in sampleRegularly() }
    wrapped?.nextSample = next
  }

  private func interval(_ nobodyRuns: Bool) -> Duration {
    guard let wrapped else { return .seconds(1) }
    return nobodyRuns ? Wrapped.restingInterval : wrapped.interval
  }

  func takeReading() {
    guard let info = try? MemoryInfo.read() else { return }
    let stall = stalls.read(at: EventLoop.now, window: engine.policy.pressure.shortestWindow)
    lastStall = stall
    feed(
      .memory(
        MemoryReading(
          total: ByteCount(info.total), available: ByteCount(info.available),
          someStall: stall?.some, fullStall: stall?.full, swapFree: ByteCount(info.swapFree))))
  }

  /// One look at all processes for those who have no cgroup; `nil` where nobody needs it.
  func scanForWorkers(_ runtimes: some Sequence<WorkerRuntime>) -> ProcessScan? {
    let needed = runtimes.contains { $0.process.map { $0.cgroup == nil } ?? false }
    guard needed else { return nil }
    return try? wrapped == nil ? ProcessScan.take() : ProcessScan.takeDescendants()
  }

  /// A running worker's footprint and activity. The exact footprint costs the kernel a walk through
  /// all page tables, so it is taken only when the cheap count of resident pages, or the
  /// size of its purgeable memory, has moved.
  private func sample(_ runtime: WorkerRuntime, _ scan: ProcessScan?) {
    guard let process = runtime.process, let tree = try? process.tree(in: scan) else { return }
    keepLogSmall(runtime)
    lookForKernelKills(of: runtime)
    let now = EventLoop.now
    // In a group of its own, also what children used that have ended meanwhile.
    let cpu =
      process.cgroup?.cpuMicroseconds()
      ?? tree.processes.reduce(0) { $0 + $1.cpuTicks } * 1_000_000 / ClockTicks.perSecond
    let anonymous = tree.pids.reduce(0) { $0 + Self.anonymousMemory(of: $1) }
    let last = runtime.sample
    runtime.sample.cpu = cpu
    runtime.sample.at = now
    if last.at != .zero,
      let event = activity(runtime, tree, cpu: cpu &- last.cpu, in: now - last.at)
    {
      feed(event)
    }
    let moved = anonymous > last.anonymous ? anonymous - last.anonymous : last.anonymous - anonymous
    let offersMoved = lookAtOffers(runtime)
    if moved >= 128 * 1024 || offersMoved || last.at == .zero {
      // While the budget allows no look it stays due.
      guard runtime.measuring.isDue(at: now) else { return }
      runtime.sample.anonymous = anonymous
      measureWhenDue(runtime)
    }
  }

  /// - Parameter cpu: microseconds.
  private func activity(
    _ runtime: WorkerRuntime, _ tree: ProcessTree, cpu: UInt64, in span: Duration
  ) -> Event? {
    let id = runtime.id
    let rules = runtime.configuration.policy.foreground
    guard rules.by == .activity else {
      // In shadow mode a call counts: it would have woken a worker that would have been asleep.
      return engine.imaginesSleep(of: id) && hasTraffic(runtime, tree) ? .activity(id) : nil
    }
    // Both, because both remember what they have seen.
    let (hasTraffic, isAtWork) = (hasTraffic(runtime, tree), wrapped?.isAtWork(tree) == true)
    if hasTraffic || isAtWork { return .activity(id) }
    // Below zero: one that had a share of it has ended.
    guard cpu < 1 << 62 else { return nil }
    let share = Double(cpu) * 1000 / Double(max(span.wholeNanoseconds, 1)) * 100
    return share >= rules.cpuBelow ? .worked(id) : nil
  }

  /// Resident less file-backed pages, from /proc/PID/statm (proc_pid_statm(5)).
  static func anonymousMemory(of pid: Int32) -> UInt64 {
    guard let text = try? readText("/proc/\(pid)/statm") else { return 0 }
    let words = text.split(separator: " ")
    guard words.count > 2, let resident = UInt64(words[1]), let shared = UInt64(words[2]),
      resident >= shared
    else { return 0 }
    return (resident - shared) * pageSize
  }
}
