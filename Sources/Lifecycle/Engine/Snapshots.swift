import Policy

extension Engine {
  /// The worker's state. `nil`: there is no such worker.
  public func state(of worker: WorkerID) -> WorkerState? {
    index(of: worker).map { workers[$0].state }
  }

  /// How much of the worker's footprint is in swap or in the image of a trim, by the last
  /// measurement; zero if there is no such worker.
  public func swapped(of worker: WorkerID) -> ByteCount {
    index(of: worker).flatMap { workers[$0].run.trim?.swapped } ?? .zero
  }

  /// The part of the worker's footprint that is in RAM, by the last measurement.
  public func resident(of worker: WorkerID) -> ByteCount {
    index(of: worker).map { workers[$0].resident } ?? .zero
  }

  /// The last measured footprint. Zero: there is no measurement, or no such worker. For callers
  /// that ask often and don't need a whole snapshot.
  public func footprint(of worker: WorkerID) -> ByteCount {
    index(of: worker).map { workers[$0].footprint } ?? .zero
  }

  /// The names of all workers, sorted.
  public var workerIDs: [WorkerID] { workers.map(\.id) }

  /// The workers that get processor time, sorted by name.
  public var runningWorkers: [WorkerID] {
    workers.indices.filter { workers[$0].state.runs }.map { workers[$0].id }
  }

  /// The worker's profile. `nil`: there is no such worker.
  public func profile(of worker: WorkerID) -> WorkerProfile? {
    index(of: worker).map { workers[$0].profile }
  }

  /// The worker as the engine sees it. `nil`: there is no such worker.
  ///
  /// - Parameter now: the time for sentences with durations. `nil`: the time of the last event.
  public func snapshot(of worker: WorkerID, at now: Instant? = nil) -> WorkerSnapshot? {
    index(of: worker).map { snapshot(workers[$0], at: max(self.now, now ?? self.now)) }
  }

  /// All workers, sorted by name.
  public func snapshots(at now: Instant? = nil) -> [WorkerSnapshot] {
    workers.map { snapshot($0, at: max(self.now, now ?? self.now)) }
  }

  private func snapshot(_ worker: WorkerRecord, at now: Instant) -> WorkerSnapshot {
    WorkerSnapshot(
      worker: worker.id, state: worker.state, band: worker.band(at: now), profile: worker.profile,
      footprint: worker.footprint, peakFootprint: worker.run.peakFootprint, since: worker.since,
      stateSince: worker.stateSince, lastUsed: worker.lastUse(at: now), cause: worker.cause,
      hibernationVerdict: hibernationVerdict(of: worker, at: now),
      imageSize: worker.state == .hibernated ? worker.run.hibernation.imageSize : nil,
      launchCost: worker.launchCost, resumeCost: worker.resumeCost, lastExit: worker.lastExit,
      tasks: worker.run.tasks.map(\.name), lastShed: worker.lastShed, lastMiss: worker.lastMiss,
      earlyWake: worker.earlyWakeSummary(at: now), purgeable: worker.run.purgeable,
      isShadow: isShadow(worker), isModeByRequest: worker.modeByRequest != nil,
      protection: worker.protection, protectedUntil: worker.protectedUntil,
      asleepSince: worker.asleepSince, lastWake: worker.run.lastWake, notice: worker.run.notice,
      footprintRestarts: worker.footprintRestarts,
      leak: worker.state.isAlive ? worker.run.growth?.suspicion : nil,
      shadow: worker.shadow.summary.isEmpty ? nil : worker.shadow.summary,
      trim: trimState(of: worker, at: now))
  }
}

extension WorkerRecord {
  /// Neither a heartbeat nor a wake by the worker's own timer begins another sleep. `nil`: the
  /// worker doesn't sleep, or slept already when it was adopted.
  fileprivate var asleepSince: Instant? {
    switch state {
    case .suspended, .hibernating, .hibernated:
      run.restingSince == run.launchAskedAt ? nil : run.restingSince
    default: nil
    }
  }
}
