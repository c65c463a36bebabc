import Glibc
import Linux

/// One hibernation under way: the state that its steps share.
struct Operation {
  let request: HibernationRequest
  /// How the worker will be restored.
  let restore: RestorePlan
  /// True if it uses a base, and prepares for the next overlay.
  let overlays: Bool
  /// The key, if the image is to be encrypted.
  let seal: Seal?
  /// What is missing, if the worker is trimmed already. The next image gets it from the earlier
  /// one.
  let inherited: MissingPages?
  let hibernator: Hibernator
  var lazyRefusal: String?
  var trackingRefusal: String?
  var overlay: Overlay?
  let started = Clocks.monotonic
  var processes: [SeizedProcess] = []
  private(set) var writer: ImageWriter?
  /// The image's mark, from commit A on.
  private(set) var mark: ImageMark?
  private(set) var filePages = FilePages()

  /// The cgroup if the worker may rest frozen. Otherwise it rests stopped, traced and parked.
  var freezer: WorkerCgroup? { target.cgroup?.freezer }

  init(
    _ request: HibernationRequest, restore: RestorePlan, overlays: Bool, seal: Seal?,
    inherited: MissingPages? = nil, hibernator: Hibernator
  ) {
    self.request = request
    self.restore = restore
    self.overlays = overlays
    self.seal = seal
    self.inherited = inherited
    self.hibernator = hibernator
  }

  var target: HibernationTarget { request.target }
  var path: String { request.path }

  // MARK: up to commit A: nothing of the worker is changed

  /// - Parameter listed: the worker's processes, if they are known.
  mutating func stopAndSeize(_ listed: ProcessTree?) throws(HibernationError) {
    let tree = try stop(listed)
    FaultPoint.stopped.pass()
    // A frozen process may have been between vfork and exec. Once stopped, it is past the exec.
    try SharedMemoryMaps.check(tree.processes)
    for stat in tree.processes {
      let seized = try attempt(.seizing) {
        let session = try TraceSession.seize(stat.identity)
        do {
          // While a process is traced, no other process can get its number before its tracer has
          // seen its end.
          var memory = try target.memory(of: stat.identity)
          memory.mayLackPages = inherited?[stat.identity] != nil
          return SeizedProcess(
            stat: stat, session: session, memory: memory,
            sequences: try RestartableSequences(of: session))
        } catch {
          session.detach()
          throw error
        }
      }
      processes.append(seized)
      try attempt(.seizing) { try seized.session.restartInterruptedSyscalls() }
    }
    if processes.isEmpty { throw HibernationError(.seizing, "it has ended", aftermath: .vanished) }
    FaultPoint.seized.pass()
  }

  private func stop(_ listed: ProcessTree?) throws(HibernationError) -> ProcessTree {
    do throws(HibernationError) {
      return try attempt(.stopping) {
        try target.stop(
          listed, until: request.standstill?.end ?? Deadline(in: HibernationTarget.timeout))
      }
    } catch {
      // If a child stays between vfork and exec, that is a better reason for the refusal.
      try SharedMemoryMaps.check(try attempt(.stopping) { try target.discover().processes })
      throw error
    }
  }

  mutating func detach() {
    for seized in processes { seized.session.detach() }
    processes = []
  }

  /// Lets the worker run, before the next attempt to stop it.
  mutating func continueWorker() {
    for seized in processes { target.correctTimeouts(seized.session) }
    let tree = tree
    detach()
    // A process that can't be signalled stays stopped, as the next attempt wants it.
    _ = try? target.waits.continueAll(tree)
  }

  /// The stopped and seized processes. They can't have made others.
  var tree: ProcessTree { ProcessTree(processes: processes.map(\.stat)) }

  mutating func capture() throws(HibernationError) {
    for index in processes.indices { try scan(index) }
    FaultPoint.scanned.pass()
    try request.standstill?.check()
    let canMove = processes.contains { $0.plan?.ranges.isEmpty == false || !$0.missing.isEmpty }
    guard canMove else {
      throw HibernationError(.scanning, "it has no memory to move that isn't shared, even by fork")
    }
    overlay = try planOverlay()
    let writer = try attempt(.capturing) { try ImageWriter(path: path, seal: seal) }
    do throws(HibernationError) {
      try capture(to: writer)
    } catch {
      writer.discard()
      // If only the name of the image couldn't be synced, it may still be there.
      if (try? ImageReader(alone: path))?.id == writer.id {
        ResumeMarker.discardImage(at: path, of: target)
      }
      throw error
    }
    self.writer = writer
    FaultPoint.committed.pass()
  }

  private mutating func capture(to writer: ImageWriter) throws(HibernationError) {
    try attempt(.capturing) {
      try Capture(
        chunks: overlay?.chunks ?? processes.flatMap { $0.plan?.chunks ?? [] },
        memories: processes.map(\.memory),
        writer: writer, compression: request.compression, access: hibernator.features.forcedAccess,
        standstill: request.standstill
      ).run(lanes: hibernator.lanes)
      try inherited?.copyChunks(
        to: writer, processes.map { ($0.stat.identity, $0.missing) }, by: request.compression)
    }
    FaultPoint.captured.pass()
    if let obstacle = request.obstacle(true) { throw HibernationError(.checking, obstacle) }
    try checkPidsUnchanged()
    let backgroundFill = processes.enumerated().flatMap { index, seized in
      (seized.plan?.backgroundMappings ?? []).map {
        ImageMapping(process: UInt32(index), range: $0)
      }
    }
    mark = try attempt(.committing) {
      try writer.commit(
        processes: processes.map(\.imageProcess), mappings: backgroundFill,
        base: overlay?.reference, durability: request.storage.durability,
        replaces: inherited != nil, standstill: request.standstill)
    }
  }

  /// Checks that no pid has changed hands: memory is read by pid.
  private func checkPidsUnchanged() throws(HibernationError) {
    for seized in processes where seized.stat.identity.hasEnded {
      throw HibernationError(
        .capturing, "process \(seized.stat.pid) has ended", aftermath: .vanished)
    }
  }

  private mutating func scan(_ index: Int) throws(HibernationError) {
    let stat = processes[index].stat
    let tracked = overlays ? hibernator.trackers[target.name]?[stat.identity] : nil
    let mappings = try attempt(.scanning) {
      if inherited == nil, let mappings = try recallMappings(of: stat, tracked) { return mappings }
      let mappings = try MemoryMapping.all(of: stat.pid)
      // The mappings of a trimmed worker are registered with its userfaultfd, later ones aren't.
      if overlays, inherited == nil {
        processes[index].memo = MappingMemo(pid: stat.pid, mappings: mappings)
      }
      return mappings
    }
    try Eligibility.check(
      mappings: mappings, of: stat, tracker: tracked?.tracker,
      isTrimmed: inherited?[stat.identity] != nil, isOfTrimmed: inherited != nil)
    try Eligibility.checkInjection(into: processes[index].session)
    guard let scratch = PagePlan.scratchAddress(in: mappings) else {
      throw HibernationError(
        .scanning, "process \(stat.pid) has no free address space", aftermath: .ineligible)
    }
    processes[index].mappings = mappings
    filePages.record(mappings, of: stat.identity)
    processes[index].scratchAddress = scratch
    if restore.isLazy {
      let seized = processes[index]
      try attempt(.scanning) { try seized.session.prepareTimeCopies(memory: seized.memory) }
    }
    let pages = try attempt(.scanning) {
      try PageMap(pid: stat.pid, useScan: hibernator.features.pagemapScan)
    }
    processes[index].pages = pages
    processes[index].resident = residentPages(of: processes[index])
    processes[index].plan = try attempt(.scanning) {
      try PagePlan(
        process: index, mappings: mappings, pages: pages,
        keep: processes[index].kept,
        workingSet: restore.isLazy ? workingSet(of: processes[index]) : nil,
        servesPages: request.isTrim,
        keepsFilePages: request.keepsWorkingSet && restore.isLazy)
    }
    try attempt(.scanning) { try inheritPages(of: index, mappings, pages) }
  }

  /// Puts the worker back into its earlier state, from any point before commit A.
  mutating func release() {
    // The worker is frozen before its release, so that it doesn't run for a moment in between. One
    // that is being trimmed runs on in any case, and may have threads that wait for a page.
    let limit = request.standstill == nil ? HibernationTarget.timeout : .milliseconds(100)
    let isFrozen = (try? freezer?.freeze(until: Deadline(in: limit))) != nil
    detach()
    // The freezer alone should keep the worker from running; without it, a stop does. (A failure
    // may have undone the stop.) What can't be signalled stays stopped: a wake continues it.
    guard let tree = try? target.discover() else { return }
    if isFrozen { try? target.waits.continueAll(tree) } else { _ = try? tree.signalAll(SIGSTOP) }
  }

  // MARK: from commit A on the image is what counts

  mutating func evict() throws(HibernationError) {
    try unregister()
    for index in processes.indices {
      guard let plan = processes[index].plan,
        !plan.ranges.isEmpty || !processes[index].missing.isEmpty
      else { continue }
      let refusal = try attempt(.evicting) { try evict(index, plan) }
      lazyRefusal = lazyRefusal ?? refusal
    }
    FaultPoint.restored.pass()
    hibernator.keepOnly(Set(processes.map(\.stat.identity)), of: target.name)
  }

  /// Frees a process's pages. Returns the reason if it can't be restored lazily.
  private mutating func evict(_ index: Int, _ plan: PagePlan) throws -> String? {
    let seized = processes[index]
    let parks = freezer == nil
    let spins = parks && Parking.mustSpin(seized.stat.pid)
    guard let vdso = seized.mappings.first(where: { $0.name == "[vdso]" }) else {
      throw HibernationError(
        .evicting, "process \(seized.stat.pid) has no vdso", aftermath: .ineligible)
    }
    var injector = try Injector(session: seized.session, memory: seized.memory, vdso: vdso)
    var refusal: String?
    do {
      try injector.mapScratch(
        at: seized.scratchAddress, permitsTracing: hibernator.features.permitsTracing)
      FaultPoint.scratchMapped.pass()
      if parks {
        processes[index].isParked = true
        try injector.parkOthers(spins: spins)
      }
      try evict(seized, plan, with: &injector)
      refusal = try prepareForFaults(seized, plan: plan, injector: injector)
      if overlays {
        trackingRefusal = try track(seized, plan: plan, injector: injector) ?? trackingRefusal
      }
    } catch {
      // The thread must have its own registers again before anything else is done. (The rollback
      // gives the other threads theirs; the scratch area is unmapped then.)
      try? injector.finish()
      processes[index].isParked = false
      throw error
    }
    FaultPoint.evicted.pass()
    if parks { try injector.finishParked(spins: spins) } else { try injector.finish() }
    return refusal
  }
}
