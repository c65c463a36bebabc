import JSONLines
import Lifecycle
import Policy
import Simulation

// What the events and recorded directives of a journal say about uses, footprints and costs.

extension HistoryReader {
  mutating func record(_ event: Event, _ directives: [JSON], at now: Int64) {
    learn(event, at: now)
    switch event {
    case .added(let worker, let profile):
      appear(worker, profile, in: .terminated, footprint: nil, at: now)
    case .adopted(let worker, let profile, let state):
      appear(worker, profile, in: state, footprint: nil, at: now)
    case .profileChanged(let worker, let profile): workers[worker]?.profile = profile
    case .channelsChanged(let worker, let canShed, _): workers[worker]?.profile?.canShed = canShed
    case .removed(let worker), .released(let worker):
      if workers[worker]?.state.isAlive == true { end(worker, at: now) }
      setState(worker, .terminated, at: now)
    case .moved(let worker, let state, _): setState(worker, state, at: now)
    case .request(let request):
      let isUse = [.start, .restart, .foreground, .wake].contains(request.verb)
      if isUse, workers[request.worker] != nil {
        recordUse(request.worker, selfInitiated: false, at: now)
      }
    case .activity(let worker), .wakeNeeded(let worker, _):
      recordUse(worker, selfInitiated: false, at: now)
    case .worked(let worker), .timerDue(let worker, _):
      recordUse(worker, selfInitiated: true, at: now)
    case .footprint(let worker, let bytes):
      addElapsedTime(worker, at: now)
      change(worker) { $0.setFootprint(bytes.bytes) }
    case .swapped, .trimmed, .trimFailed, .filled, .trimLost: recordTrim(event, at: now)
    case .memory(let reading): record(reading, at: now)
    default: break
    }
    for directive in directives { record(directive, at: now) }
    guard case .resumed(let worker, _) = event else { return }
    change(worker) { $0.woke() }
  }

  private mutating func learn(_ event: Event, at now: Int64) {
    guard let worker = event.subject, let tracked = workers[worker] else { return }
    func since(_ what: TrackedWorker.Operation) -> Double? {
      tracked.began[what].map { Double(now - $0) / 1e9 }
    }
    switch event {
    case .suspended: if let time = since(.suspend) { history.costs.suspend.add(time) }
    case .staysAwake: if isOpen { history.costs.staysAwake.insert(worker) }
    case .exited: if let time = since(.terminate) { history.costs.exit.add(time) }
    case .hibernated(_, let result):
      addElapsedTime(worker, at: now)
      endTrim(worker)
      let (before, after) = (result.footprintBefore.bytes, result.footprintAfter.bytes)
      change(worker) { $0.hibernated(before: before, after: after) }
      guard isOpen, before > 0 else { return }
      let bytes = Double(before)
      history.costs.hibernate.add(result.duration / .seconds(1) / bytes, weight: bytes)
      history.costs.imageShare.add(Double(result.imageSize.bytes) / bytes, weight: bytes)
      history.costs.hibernatedFootprint.add(Double(after))
    case .resumed(_, let took):
      guard isOpen else { return }
      let seconds = took / .seconds(1)
      if tracked.sleptIn == .hibernated {
        history.costs.resume.add(megabytes: Double(tracked.footprint) / 1_048_576, seconds: seconds)
      } else {
        history.costs.suspendedWake.add(seconds)
      }
    default: break
    }
  }

  // MARK: directives

  private mutating func record(_ directive: JSON, at now: Int64) {
    guard let name = directive["w"]?.text else { return }
    let worker = WorkerID(name)
    switch directive["d"]?.text {
    case "launch": workers[worker]?.began[.launch] = now
    case "suspend": workers[worker]?.began[.suspend] = now
    case "terminate": workers[worker]?.began[.terminate] = now
    case "transition":
      guard let from = directive["from"]?.text.flatMap(WorkerState.init(rawValue:)),
        let to = directive["to"]?.text.flatMap(WorkerState.init(rawValue:))
      else { return }
      record(
        worker, from: from, to: to, isForMemory: directive["cause"]?["pressure"] != nil, at: now)
    default: break
    }
  }

  private mutating func record(
    _ worker: WorkerID, from: WorkerState, to: WorkerState, isForMemory: Bool, at now: Int64
  ) {
    if from == .launching, to.runs, to != .launching, let began = workers[worker]?.began[.launch] {
      workers[worker]?.began[.launch] = nil
      workers[worker]?.launches.add(Double(now - began) / 1e9)
    }
    if to == .resuming { workers[worker]?.sleptIn = from }
    if isOpen, from == .resuming, to.runs { history.recorded.wakes += 1 }
    // A termination for lack of memory is a decision of the policy, and no event of the history.
    if to == .terminated, !isForMemory { end(worker, at: now) }
    setState(worker, to, at: now)
  }

  // MARK: changes of a worker

  mutating func setState(_ worker: WorkerID, _ state: WorkerState, at now: Int64) {
    addElapsedTime(worker, at: now)
    if !state.isAlive {
      workers[worker]?.endUse()
      endTrim(worker)
    }
    change(worker) { $0.setState(state, at: now) }
  }

  private mutating func recordTrim(_ event: Event, at now: Int64) {
    guard let worker = event.subject else { return }
    addElapsedTime(worker, at: now)
    switch event {
    case .swapped(_, let bytes): change(worker) { $0.setSwapped(bytes.bytes) }
    case .trimmed(_, let result):
      endTrim(worker)
      change(worker) { $0.trimmed(result) }
      if isOpen { history.recorded.trims += 1 }
    case .trimFailed where isOpen:
      history.costs.trims.failures += 1
      history.costs.workerTrims[worker, default: MeasuredTrims()].failures += 1
    case .filled, .trimLost: endTrim(worker)
    default: break
    }
  }

  /// Counts the last trim of a worker, whose memory is moved by something else now.
  mutating func endTrim(_ worker: WorkerID) {
    guard let trim = workers[worker]?.endTrim(), isOpen else { return }
    history.costs.trims.add(trim)
    history.costs.workerTrims[worker, default: MeasuredTrims()].add(trim)
  }

  /// Changes a worker, and keeps the sum of what all workers hold up to date.
  mutating func change(_ worker: WorkerID, _ change: (inout TrackedWorker) -> Void) {
    guard var tracked = workers[worker] else { return }
    let before = tracked.held
    change(&tracked)
    held += tracked.held - before
    workers[worker] = tracked
  }

  mutating func addElapsedTime(_ worker: WorkerID, at now: Int64) {
    guard isOpen, let sums = workers[worker]?.addElapsedTime(at: now) else { return }
    history.recorded.byteSeconds += sums.held
    history.recorded.savedByteSeconds += sums.saved
  }

  mutating func recordUse(_ worker: WorkerID, selfInitiated: Bool, at now: Int64) {
    if isOpen { workers[worker]?.recordUse(selfInitiated: selfInitiated, at: now) }
  }

  mutating func end(_ worker: WorkerID, at now: Int64) {
    if isOpen { workers[worker]?.end(at: now) }
  }

  // MARK: the machine

  /// The smallest change that is recorded, as a share of the memory, of what is used outside of
  /// workers.
  private static let step = 0.005

  private mutating func record(_ reading: MemoryReading, at now: Int64) {
    guard isOpen, reading.total > .zero else { return }
    history.memory = reading.total
    let used = reading.total.bytes - reading.available.bytes - held
    let share = min(1, max(0, Double(used) / Double(reading.total.bytes)))
    let rounded = (share / Self.step).rounded() * Self.step
    let last = history.trace.others.last
    if let last, (last.share - share).magnitude < Self.step { return }
    let time = last == nil ? 0 : now / 1_000_000
    history.trace.others.append(Trace.HostChange(at: time, share: rounded))
  }
}
