import CLinux
import Glibc
import Linux

extension Hibernator {
  /// Recovers a worker whose old daemon ended at an unknown moment. Afterwards the worker runs,
  /// exactly as it was.
  ///
  /// Without an image the worker had only been stopped. With an image, its memory is written back
  /// once it is proven that no thread has run since: every thread must be where the image says,
  /// except one for each process, which was borrowed to free pages.
  ///
  /// Call it on the hibernator's thread: it waits for disks.
  /// - Parameters:
  ///   - expectation: what the worker's record says about its image. A worker whose memory is in
  ///     one image doesn't run without that image, nor with another one.
  ///   - keepsTrims: true leaves the missing pages of a trimmed worker in its image. This process
  ///     must then live on, to fill them when they are needed.
  ///   - recorded: as for `resume`.
  /// - Throws: `HibernationError`. `intact`: the worker still sleeps; trying again may work, with
  ///   more rights, say. `unverifiable`: it must be killed. `vanished`: it has ended.
  @discardableResult
  public func recover(
    _ target: HibernationTarget, from path: String,
    expecting expectation: ImageExpectation = .unknown(), keepsTrims: Bool = false,
    recorded: () -> String? = { nil }
  ) throws(HibernationError) -> ResumeSummary {
    let started = Clocks.monotonic
    let restored: UInt64
    do throws(HibernationError) {
      restored = try recoverMemory(
        of: target, from: path, expectation, keepsTrims: keepsTrims, recorded)
    } catch { throw resolved(error, target, image: path) }
    SelfMemory.releaseUnusedSoon()
    var summary = ResumeSummary(
      restored: restored, duration: .nanoseconds(Clocks.monotonic - started))
    if let missing = fills[target.name]?.missing {
      (summary.missing, summary.backgroundFill) = (missing, missing.bytes)
    }
    return summary
  }

  private func recoverMemory(
    of target: HibernationTarget, from path: String, _ expectation: ImageExpectation,
    keepsTrims: Bool, _ recorded: () -> String?
  ) throws(HibernationError) -> UInt64 {
    if fills[target.name]?.handedOver != nil {
      try serveTrimmed(target, image: path)
      return try wakeStopped(target)
    }
    try awaitFill(of: target.name)
    discardFile(ImageWriter.partialPath(of: path))
    if let absence = expectation.absence(of: path) { throw absence }
    if isAbsent(path) {
      try Self.checkNeedsNoImage(target, at: path, expectation)
      dropBase(of: target.name, for: path)
      return try wakeStopped(target)
    }
    let image: ImageReader
    do throws(HibernationError) {
      image = try open(path, heldBase: bases[target.name]?.image)
    } catch {
      if isAbsent(path) {
        return try recoverMemory(
          of: target, from: path, expectation, keepsTrims: keepsTrims, recorded)
      }
      throw error
    }
    // The standby pager may fill the pages now. The lock waits for it.
    _ = image.lock(waits: true)
    if !image.isStillAtPath {
      return try recoverMemory(
        of: target, from: path, expectation, keepsTrims: keepsTrims, recorded)
    }
    if try attempt(.checking, { try image.wasRestored(to: target) }) {
      discardFile(path)
      dropBase(of: target.name, for: path)
      return try wakeStopped(target)
    }
    if expectation.isOfHibernated { try image.check(isOf: target, expectation) }
    if target.root.life == .lives, !image.processes.contains(where: { $0.identity == target.root })
    {
      // A process keeps its start time, so this is an earlier worker's image.
      Self.removeUnlessNeeded(path)
      bases[target.name] = nil
      try attempt(.waking) { try target.wake() }
      return 0
    }
    try checkAnyProcessLives(image)
    if image.progress == .filling {
      if keepsTrims, try continueTrim(image, target) { return 0 }
      return try continueFill(image, target)
    }
    let isFrozen = try attempt(.stopping) { try target.isFrozen() }
    if isFrozen, image.progress == .atRest {
      return try restoreMemory(target, from: image.asRestingImage, run: true, recorded: recorded)
    }

    return try recoverPages(of: target, from: image, path, isFrozen: isFrozen, recorded)
  }

  /// Seizes the threads, writes their memory back, and lets them run.
  private func recoverPages(
    of target: HibernationTarget, from image: ImageReader, _ path: String, isFrozen: Bool,
    _ recorded: () -> String?
  ) throws(HibernationError) -> UInt64 {
    let tree = try attempt(.stopping) { try discoverWithoutManagerJobs(target, image) }
    // Seizing the threads makes them run for a moment, which wakes their waits.
    target.waits.willWake(tree)
    let seizedProcesses = try stopAndProve(image, target: target, tree: tree, isFrozen: isFrozen)
    defer { for seized in seizedProcesses { seized.session.detach() } }
    FaultPoint.recoverySeized.pass()
    for seized in seizedProcesses { try restoreRegisters(seized, target) }
    FaultPoint.registersBack.pass()
    try attempt(.writingBack) { try image.unregister() }
    try writeBack(image, into: target, sessions: seizedProcesses.map(\.session))
    try recordResume(from: image, of: target, recorded)
    try removeImage(image, of: target, keepsBase: false)
    for seized in seizedProcesses {
      target.correctTimeouts(seized.session)
      seized.session.detach()
    }
    try attempt(.waking) { try target.wake(tree) }
    return image.dataLength
  }

  /// Lets a worker run that was only stopped: all of its memory is in place.
  private func wakeStopped(_ target: HibernationTarget) throws(HibernationError) -> UInt64 {
    target.waitForStops()
    let tree = target.restartInterruptedSyscalls()
    try attempt(.waking) { try target.wake(tree) }
    return 0
  }

  /// A seized process of the image, with the state that its threads had when it was hibernated.
  private struct SeizedImageProcess {
    let process: ImageProcess
    let session: TraceSession
    let threads: [TracedThread]
    let mappings: [MemoryMapping]
    let memory: ProcessMemory
  }

  // MARK: stop and prove

  /// Stops and seizes the processes of the image that still exist, and proves that none has run. A
  /// failure undoes nothing: a process that is stopped must stay stopped.
  private func stopAndProve(
    _ image: ImageReader, target: HibernationTarget, tree: ProcessTree, isFrozen: Bool
  ) throws(HibernationError) -> [SeizedImageProcess] {
    try attempt(.stopping) {
      try tree.signalAll(SIGSTOP)
      // Frozen threads can be traced, although /proc shows them as sleeping.
      if !isFrozen {
        for stat in tree.processes {
          try ProcessTree.waitForRest(stat, until: Deadline(in: HibernationTarget.timeout))
        }
      }
    }
    let recorded = Set(image.processes.map(\.identity))
    if let new = tree.processes.first(where: { !recorded.contains($0.identity) }) {
      throw HibernationError(
        .checking, "process \(new.pid) (\(new.name)) did not exist when the worker was hibernated",
        aftermath: .unverifiable)
    }
    var seizedProcesses: [SeizedImageProcess] = []
    do throws(HibernationError) {
      for process in image.processes where tree.contains(process.pid) {
        let session = try seize(process)
        do throws(HibernationError) {
          seizedProcesses.append(try prove(process, session: session, image: image, target: target))
        } catch {
          session.detach()
          throw error
        }
      }
      return seizedProcesses
    } catch {
      for seized in seizedProcesses { seized.session.detach() }
      throw error
    }
  }

  private func seize(_ process: ImageProcess) throws(HibernationError) -> TraceSession {
    do throws(TraceError) {
      return try TraceSession.seize(process.identity)
    } catch {
      guard case .call(let cause) = error, cause.code == EPERM else {
        throw .from(error, in: .seizing)
      }
      let tracer = (try? ProcessStatus.read(process.pid))?.tracer ?? 0  // It is for the text only.
      let reason =
        tracer != 0
        ? "process \(tracer) traces it"
        : "it is not a child of this process, and kernel.yama.ptrace_scope or missing rights "
          + "forbid tracing it; set kernel.yama.ptrace_scope=0, or recover it with CAP_SYS_PTRACE"
      throw HibernationError(.seizing, "can't trace process \(process.pid): \(reason)")
    }
  }

  private func prove(
    _ process: ImageProcess, session: TraceSession, image: ImageReader,
    target: HibernationTarget
  ) throws(HibernationError) -> SeizedImageProcess {
    let threads = process.threads.compactMap(TracedThread.init)
    guard threads.count == process.threads.count else {
      throw HibernationError(
        .reading, "the image \(image.path) has registers of another architecture",
        aftermath: .unverifiable)
    }
    guard Set(threads.map(\.tid)) == Set(session.threads.map(\.tid)) else {
      throw HibernationError(
        .checking, "process \(process.pid) has other threads than when it was hibernated",
        aftermath: .unverifiable)
    }
    let (mappings, memory) = try attempt(.checking) {
      (try MemoryMapping.all(of: process.pid), try target.memory(of: process.identity))
    }
    let seized = SeizedImageProcess(
      process: process, session: session, threads: threads, mappings: mappings, memory: memory)
    try checkNoThreadRan(seized, progress: image.progress)
    return seized
  }

  private func checkNoThreadRan(
    _ seized: SeizedImageProcess, progress: ImageProgress
  ) throws(HibernationError) {
    let now = Dictionary(
      seized.session.threads.map { ($0.tid, $0) }, uniquingKeysWith: { first, _ in first })
    let parking = Injector.parkingAddresses(scratch: seized.process.scratchAddress)
    // A parked thread has run only its wait, whichever process let it run.
    let moved = seized.threads.filter { thread in
      guard let current = now[thread.tid] else { return true }
      return !thread.isLike(current) && !parking.contains(current.registers.instruction)
    }
    guard let one = moved.first, let current = now[one.tid] else { return }
    if moved.count == 1, one.isWaiting {
      let borrowed = try borrowedAddresses(seized)
      let wasBorrowed =
        current.registers.isLike(one.registers) || borrowed.contains(current.registers.instruction)
      if progress == .committed, wasBorrowed { return }
      // The thread was parked and is just leaving its wait (arm64: `Injector.leaveCall`), or has
      // left it and hasn't got its own mask yet: no thread of a program has this mask.
      let unmaskable: UInt64 = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1)
      let masksAll = current.signalMask | unmaskable == ~0
      if clinux_stop_hides_calls() == 1, wasBorrowed, masksAll { return }
    }
    throw HibernationError(
      .checking,
      "thread \(one.tid) has run since its memory was freed",
      aftermath: .unverifiable)
  }

  private func borrowedAddresses(
    _ seized: SeizedImageProcess
  ) throws(HibernationError) -> Set<UInt64> {
    guard let vdso = seized.mappings.first(where: { $0.name == "[vdso]" }) else { return [] }
    return try attempt(.checking) {
      try Injector.addresses(
        vdso: vdso, memory: seized.memory, scratch: seized.process.scratchAddress,
        pid: seized.process.pid)
    }
  }

  // MARK: put right

  /// Gives the threads their registers and signal masks, and unmaps a scratch area that is left.
  private func restoreRegisters(
    _ seized: SeizedImageProcess, _ target: HibernationTarget
  ) throws(HibernationError) {
    try attempt(.seizing) { try seized.session.adopt(seized.threads) }
    let scratch = PageRange(
      address: seized.process.scratchAddress, length: Injector.scratchLength)
    let isMapped = seized.mappings.contains {
      $0.start == scratch.address && $0.length == scratch.length && $0.executable && !$0.writable
        && !$0.hasFile
    }
    guard isMapped else { return }
    try attempt(.seizing) {
      let foreign = try Eligibility.foreignUserfaults(of: seized.process.pid)
      // Injected calls don't run in a frozen group. This tracer keeps all threads stopped.
      try target.cgroup?.freezer?.thaw(until: Deadline(in: HibernationTarget.timeout))
      try Eligibility.checkInjection(into: seized.session)
      var injector = try Injector(
        session: seized.session, memory: seized.memory, leftBehind: scratch)
      FaultPoint.borrowedAgain.pass()
      for number in foreign {
        // The program has no userfaultfd of its own: such a worker isn't hibernated.
        try injector.closeDescriptor(number)
      }
      try injector.finish()
    }
  }
}
