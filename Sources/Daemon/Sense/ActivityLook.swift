import Lifecycle
import Linux
import Policy
import Supervision

// What running workers do: processor time, traffic. Their sockets and files are asked on another thread: a
// socket that its program is writing to, and a file whose file system doesn't answer, may take any time.

/// What one look at a running worker has found.
struct ActivityFindings: Sendable {
  /// Whose they are.
  var root: ProcessIdentity
  /// Microseconds of processor time, since its start.
  var cpu: UInt64
  /// Bytes.
  var anonymous: UInt64
  /// nil: it wasn't asked for.
  var hasTraffic: Bool?
  /// Of a wrapped program: whether it is at work, and what the next look goes by.
  var work: (isAtWork: Bool, meter: WorkMeter)?
}

extension Daemon {
  /// So long a look may take before what waits for it goes on without.
  private static let activityPatience = Duration.seconds(3)

  /// A running worker's footprint and activity. The exact footprint costs the kernel a walk through
  /// all page tables, so it is taken only when the cheap count of resident pages, or the
  /// size of its purgeable memory, has moved.
  func sample(_ runtime: WorkerRuntime) {
    guard let process = runtime.process else { return }
    // A worker that hasn't run has written no log, and its processes and their memory are what they were. Only
    // what comes in over its sockets comes without its running.
    if !countsTraffic(of: runtime), runtime.sample.isUnchanged,
      runtime.sample.canSkip(cpu: process.cgroup?.cpuMicroseconds(), at: EventLoop.now)
    {
      return
    }
    keepLogSmall(runtime)
    lookForKernelKills(of: runtime)
    lookAtActivity(of: runtime) { [unowned self] found in
      if let found { note(found, of: runtime) }
    }
  }

  /// Calls back on the loop; nil: it isn't known.
  func lookAtActivity(of runtime: WorkerRuntime, then: @escaping (ActivityFindings?) -> Void) {
    guard let process = runtime.process else { return then(nil) }
    let id = runtime.id
    let look = runtime.activityLook ?? makeActivityLook(runtime)
    runtime.activityLook = look
    let identity = process.identity
    func take() {
      looks.enter { done in
        look.take { found in
          done()
          heard(found)
        }
      }
    }
    func heard(_ found: ActivityFindings??) {
      guard workers[id] === runtime, runtime.process?.identity == identity,
        let found = found ?? nil, found.root == identity
      else { return then(nil) }
      then(found)
    }
    if process.cgroup != nil { return take() }
    // One look at all processes serves all workers that are sampled now.
    scanProcesses { [unowned self] _ in
      if workers[id] === runtime, runtime.process === process { take() } else { then(nil) }
    }
  }

  private func makeActivityLook(_ runtime: WorkerRuntime) -> SharedLook<ActivityFindings?> {
    SharedLook(jobs, about: "activity of \(runtime.id)", within: Self.activityPatience) {
      [unowned self, weak runtime] () -> @Sendable () -> ActivityFindings? in
      guard let runtime else { return { nil } }
      return activityJob(runtime)
    }
  }

  private func activityJob(_ runtime: WorkerRuntime) -> @Sendable () -> ActivityFindings? {
    guard let process = runtime.process else { return { nil } }
    let (identity, session, cgroup) = (process.identity, process.session, process.cgroup)
    let scan = lastScan?.scan
    let traffic = beginTrafficLook(runtime)
    let wantsTraffic = traffic != nil
    let isSwallowed = runtime.isAsked
    let meter =
      runtime.configuration.policy.foreground.mode == .activity ? wrapped?.work : nil
    return {
      let all: ProcessTree?
      if let cgroup {
        // One that has ended can't be looked at any more.
        all = try? ProcessTree.discover(root: identity, session: session, cgroup: cgroup)
      } else {
        all = scan?.tree(root: identity, session: session)
      }
      guard let tree = all else { return nil }
      // In a group of its own, also what children used that have ended meanwhile.
      let cpu =
        cgroup?.cpuMicroseconds()
        ?? tree.processes.reduce(0) { $0 + $1.cpuTicks } * 1_000_000 / ClockTicks.perSecond
      var found = ActivityFindings(
        root: identity, cpu: cpu,
        anonymous: tree.pids.reduce(0) { $0 + Daemon.anonymousMemory(of: $1) })
      if wantsTraffic {
        let hasTraffic = traffic?.perform(at: tree) == true
        found.hasTraffic = hasTraffic && !isSwallowed
      }
      if var meter { found.work = (meter.isAtWork(tree), meter) }
      return found
    }
  }

  /// nil: what comes in doesn't matter now. What a probe brings with it is no activity: from the question
  /// on nothing is looked at until `LivenessMonitor` or `ShedOverHTTP` lets a look swallow it.
  private func beginTrafficLook(_ runtime: WorkerRuntime) -> TrafficMonitor.Look? {
    guard countsTraffic(of: runtime) else { return nil }
    if runtime.isAsked, !runtime.isSettling { return nil }
    if runtime.traffic == nil {
      // Without a descriptor for it, only processor time counts until the next look.
      runtime.traffic = try? TrafficMonitor(
        latches: latches, ownChannels: runtime.ownChannels, ignored: runtime.healthPorts)
    }
    latches?.take()
    return runtime.traffic?.begin()
  }

  /// In shadow mode a call counts: it would have woken a worker that would have been asleep.
  private func countsTraffic(of runtime: WorkerRuntime) -> Bool {
    runtime.configuration.policy.foreground.mode == .activity
      || engine.imaginesSleep(of: runtime.id)
  }

  private func note(_ found: ActivityFindings, of runtime: WorkerRuntime) {
    if let work = found.work { wrapped?.work = work.meter }
    guard engine.state(of: runtime.id)?.runs == true, !runtime.isBusy else {
      runtime.sample.isUnchanged = false
      return
    }
    let now = EventLoop.now
    let last = runtime.sample
    runtime.sample.cpu = found.cpu
    runtime.sample.at = now
    if last.at != .zero,
      let event = activity(runtime, found, cpu: found.cpu &- last.cpu, in: now - last.at)
    {
      driver.send(event)
    }
    let moved =
      found.anonymous > last.anonymous
      ? found.anonymous - last.anonymous : last.anonymous - found.anonymous
    let offersMoved = runtime.conversation?.offers.look() == true
    runtime.sample.isUnchanged =
      last.at != .zero && found.cpu == last.cpu && moved < 128 * 1024 && !offersMoved
    if moved >= 128 * 1024 || offersMoved || last.at == .zero {
      // While the budget allows no look it stays due.
      guard runtime.measuring.isDue(at: now) else { return }
      runtime.sample.anonymous = found.anonymous
      measureWhenDue(runtime)
    }
  }

  /// - Parameter cpu: microseconds.
  private func activity(
    _ runtime: WorkerRuntime, _ found: ActivityFindings, cpu: UInt64, in span: Duration
  ) -> Event? {
    let id = runtime.id
    let rules = runtime.configuration.policy.foreground
    guard rules.mode == .activity else { return found.hasTraffic == true ? .activity(id) : nil }
    if found.hasTraffic == true || found.work?.isAtWork == true { return .activity(id) }
    // Below zero: one that had a share of it has ended.
    guard cpu < 1 << 62 else { return nil }
    let share = Double(cpu) * 1000 / Double(max(span.wholeNanoseconds, 1)) * 100
    return share >= rules.cpuBelow ? .worked(id) : nil
  }
}
