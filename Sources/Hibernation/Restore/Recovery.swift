import CLinux
import Glibc
import Linux

extension Hibernator {
  /// Recovers a worker whose old daemon ended at an unknown moment. Afterwards the worker runs,
  /// exactly as it was.
  ///
  /// Without an image the worker had only been stopped. With an image, its memory is written back
  /// as soon as it is proven that no thread has run since the image was made: every thread must be
  /// where the image says, except the one thread per process that was borrowed to free pages.
  ///
  /// Call it on the hibernator's thread: it waits for disks.
  /// - Parameters:
  ///   - expectation: what the worker's record says about its image. A worker whose memory is in
  ///     one image doesn't run without that image, nor with another one.
  ///   - recorded: as for `resume`.
  /// - Throws: `HibernationError`. `intact`: the worker still sleeps on its image, and trying again
  ///   (with more rights, say) may work. `unverifiable`: the worker must be killed. `vanished`: no
  ///   process is left, and the image has been removed.
  @discardableResult
  public func recover(
    _ target: HibernationTarget, from path: String,
    expecting expectation: ImageExpectation = .unknown, recorded: () -> String? = { nil }
  ) throws(HibernationError) -> ResumeSummary {
    let started = Clocks.monotonic
    let restored: UInt64
    do throws(HibernationError) {
      restored = try recoverMemory(of: target, from: path, expectation, recorded)
    } catch { throw judge(error, target, image: path) }
    kept.drop(target.name)
    clinux_trim_own_memory()
    return ResumeSummary(
      restored: restored, duration: .nanoseconds(Clocks.monotonic - started))
  }

  private func recoverMemory(
    of target: HibernationTarget, from path: String, _ expectation: ImageExpectation,
    _ recorded: () -> String?
  ) throws(HibernationError) -> UInt64 {
    try awaitFill(of: target.name)
    discardFile(ImageWriter.partialPath(of: path))
    if let absence = expectation.absence(of: path) { throw absence }
    if isAbsent(path) {
      dropBase(of: target.name, for: path)
      return try letRun(target)
    }
    let image: ImageReader
    do throws(HibernationError) {
      image = try open(path, heldBase: bases[target.name]?.image)
    } catch {
      if isAbsent(path) {
        return try recoverMemory(of: target, from: path, expectation, recorded)
      }
      throw error
    }
    // The standby pager may fill the pages now. The lock waits for it.
    _ = image.lock(waits: true)
    if !image.isInPlace {
      return try recoverMemory(of: target, from: path, expectation, recorded)
    }
    if try attempt(.checking, { try image.isUsedUp(by: target) }) {
      discardFile(path)
      dropBase(of: target.name, for: path)
      return try letRun(target)
    }
    if expectation != .unknown { try image.check(isOf: target, expectation) }
    if target.root.life == .lives, !image.processes.contains(where: { $0.identity == target.root })
    {
      // A process keeps its start time, so this is an earlier worker's image.
      Self.removeUnlessNeeded(path)
      bases[target.name] = nil
      try attempt(.waking) { try target.wake() }
      return 0
    }
    try checkAnybodyLives(image)
    if image.progress == .filling { return try continueFill(image, target) }
    let isFrozen = try attempt(.stopping) { try target.isFrozen() }
    if isFrozen, image.progress == .atRest {
      return try bringBack(target, from: image.resting, run: true, recorded: recorded)
    }

    return try recoverPages(of: target, from: image, path, isFrozen: isFrozen, recorded)
  }

  /// Seizes the threads, writes their memory back, and lets them run.
  private func recoverPages(
    of target: HibernationTarget, from image: ImageReader, _ path: String, isFrozen: Bool,
    _ recorded: () -> String?
  ) throws(HibernationError) -> UInt64 {
    let tree = try attempt(.stopping) { try withoutManagersJobs(target, image) }
    // Seizing the threads makes them run for a moment, which wakes their waits.
    target.waits.willWake(tree)
    let held = try hold(image, target: target, tree: tree, isFrozen: isFrozen)
    defer { for captive in held { captive.session.detach() } }
    FaultPoint.recoverySeized.pass()
    for captive in held { try putBack(captive, target) }
    FaultPoint.registersBack.pass()
    try writeBack(image, into: target, sessions: held.map(\.session))
    try note(resumeFrom: image, of: target, recorded)
    try removeImage(image, of: target, keepsBase: false)
    for captive in held {
      target.correctTimeouts(captive.session)
      captive.session.detach()
    }
    try attempt(.waking) { try target.wake(tree) }
    return image.dataLength
  }

  /// Lets a worker run that was only stopped: all of its memory is in place.
  private func letRun(_ target: HibernationTarget) throws(HibernationError) -> UInt64 {
    target.waitForStops()
    let tree = target.restartInterruptedSyscalls()
    try attempt(.waking) { try target.wake(tree) }
    return 0
  }

  /// A seized process of the image, with the state that its threads had when it was hibernated.
  private struct SeizedProcess {
    let process: ImageProcess
    let session: TraceSession
    let threads: [TracedThread]
    let mappings: [MemoryMapping]
    let memory: ProcessMemory
  }

  // MARK: stop and prove

  /// Returns the worker's processes. While it slept without a daemon, its service manager may have
  /// started programs in its cgroup (`ExecStop=`, `ExecReload=`), and waits for them. They aren't
  /// the worker's, and aren't stopped.
  private func withoutManagersJobs(
    _ target: HibernationTarget, _ image: ImageReader
  ) throws(SystemCallError) -> ProcessTree {
    let tree = try ProcessTree.discover(
      root: target.root, session: target.session, cgroup: target.cgroup)
    guard target.cgroup?.isExternal == true,
      let jobs = ManagerJobs(
        root: target.root, tree: tree, members: Set(image.processes.map(\.identity)))
    else { return tree }
    return jobs.absent(from: tree)
  }

  /// Stops and seizes every process of the image that still exists, and proves that none has run.
  /// Nothing is undone on failure: a process that is stopped must stay stopped.
  private func hold(
    _ image: ImageReader, target: HibernationTarget, tree: ProcessTree, isFrozen: Bool
  ) throws(HibernationError) -> [SeizedProcess] {
    try attempt(.stopping) {
      try tree.signalAll(SIGSTOP)
      // Frozen threads can be traced, although /proc shows them as sleeping.
      if !isFrozen {
        for stat in tree.processes {
          try ProcessTree.waitForRest(stat, until: Deadline(in: HibernationTarget.patience))
        }
      }
    }
    let known = Set(image.processes.map(\.identity))
    if let new = tree.processes.first(where: { !known.contains($0.identity) }) {
      throw HibernationError(
        .checking, "process \(new.pid) (\(new.name)) did not exist when the worker was hibernated",
        aftermath: .unverifiable)
    }
    var held: [SeizedProcess] = []
    do throws(HibernationError) {
      for process in image.processes where tree.contains(process.pid) {
        let session = try seize(process)
        do throws(HibernationError) {
          held.append(try prove(process, session: session, image: image, target: target))
        } catch {
          session.detach()
          throw error
        }
      }
      return held
    } catch {
      for captive in held { captive.session.detach() }
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
      // The tracer is only for the error's text.
      let tracer = (try? ProcessStatus.read(process.pid))?.tracer ?? 0
      let why =
        tracer != 0
        ? "process \(tracer) traces it"
        : "it is not a child of this process, and kernel.yama.ptrace_scope or missing rights "
          + "forbid tracing it; set kernel.yama.ptrace_scope=0, or recover it with CAP_SYS_PTRACE"
      throw HibernationError(.seizing, "can't trace process \(process.pid): \(why)")
    }
  }

  private func prove(
    _ process: ImageProcess, session: TraceSession, image: ImageReader,
    target: HibernationTarget
  ) throws(HibernationError) -> SeizedProcess {
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
    let captive = SeizedProcess(
      process: process, session: session, threads: threads, mappings: mappings, memory: memory)
    try checkNobodyRan(captive, progress: image.progress)
    return captive
  }

  private func checkNobodyRan(
    _ captive: SeizedProcess, progress: ImageProgress
  ) throws(HibernationError) {
    let now = Dictionary(
      captive.session.threads.map { ($0.tid, $0) }, uniquingKeysWith: { first, _ in first })
    let parking = Injector.parkingAddresses(scratch: captive.process.scratchAddress)
    // A parked thread has run only its wait, whichever process let it run.
    let moved = captive.threads.filter { thread in
      guard let current = now[thread.tid] else { return true }
      return !thread.isLike(current) && !parking.contains(current.registers.instruction)
    }
    guard let one = moved.first, let current = now[one.tid] else { return }
    if moved.count == 1, one.isWaiting {
      let borrowed = try borrowedAddresses(captive)
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

  private func borrowedAddresses(_ captive: SeizedProcess) throws(HibernationError) -> Set<UInt64> {
    guard let vdso = captive.mappings.first(where: { $0.name == "[vdso]" }) else { return [] }
    return try attempt(.checking) {
      try Injector.addresses(
        vdso: vdso, memory: captive.memory, scratch: captive.process.scratchAddress,
        pid: captive.process.pid)
    }
  }

  // MARK: put right

  /// Gives the threads their registers and signal masks, and unmaps a scratch area that is left.
  private func putBack(
    _ captive: SeizedProcess, _ target: HibernationTarget
  ) throws(HibernationError) {
    try attempt(.seizing) { try captive.session.adopt(captive.threads) }
    let scratch = PageRange(
      address: captive.process.scratchAddress, length: Injector.scratchLength)
    let isMapped = captive.mappings.contains {
      $0.start == scratch.address && $0.length == scratch.length && $0.executable && !$0.writable
        && !$0.hasFile
    }
    guard isMapped else { return }
    try attempt(.seizing) {
      let foreign = try Eligibility.foreignUserfaults(of: captive.process.pid)
      // Injected calls don't run in a frozen group. This tracer keeps all threads stopped.
      try target.cgroup?.freezer?.thaw(until: Deadline(in: HibernationTarget.patience))
      try Eligibility.mayInject(into: captive.session)
      var injector = try Injector(
        session: captive.session, memory: captive.memory, leftBehind: scratch)
      FaultPoint.borrowedAgain.pass()
      for number in foreign {
        // The program has no userfaultfd of its own: such a worker isn't hibernated.
        try injector.closeDescriptor(number)
      }
      try injector.finish()
    }
  }
}

extension TracedThread {
  fileprivate init?(_ stored: ImageProcess.TracedThreadState) {
    guard let registers = clinux_registers(storedWords: stored.registers) else { return nil }
    self.init(
      tid: stored.tid, registers: registers, signalMask: stored.signalMask,
      isWaiting: stored.isWaiting)
  }
}
