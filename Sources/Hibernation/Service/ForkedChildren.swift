import CLinux
import Glibc
import Linux

/// The recovery of children that were forked while pages were missing. If a pager dies during a
/// fork, the child's userfaultfd is closed, because no other process has it. The child has been
/// frozen since its birth, and the pages that its parent misses are missing in it too. While it
/// hasn't run an instruction, its pages can be written as for any other process.
extension Hibernator {
  /// Writes the missing pages of a process's children.
  ///
  /// - Throws: `unverifiable` if a child has run, has ended, or can't be examined; `intact` if
  ///   files or memory are short, because the next attempt may succeed.
  func restoreChildren(
    of paged: PagedProcess, _ image: ImageReader, _ target: HibernationTarget
  ) throws(HibernationError) {
    let journal = paged.handle.journal
    do {
      let parent = image.processes[paged.index].pid
      var children = try newborns(of: parent, image, target)
      // The message arrives while the child is being made; its parent finishes that first.
      let deadline = Deadline(in: .seconds(2))
      while children.count < journal.openForks, !deadline.hasPassed {
        pauseThread(for: .milliseconds(2))
        children = try newborns(of: parent, image, target)
      }
      guard children.count >= journal.openForks else {
        throw HibernationError(
          .filling, "a child that it forked during its restore can't be reached any more",
          aftermath: .unverifiable)
      }
      let batches = journal.batches
      let before = try PageLayout(replaying: batches.closed)
      var after = before
      try after.apply(batches.open)
      // All are examined before a page is written, so that a failure leaves them as they are.
      let forked = try children.map {
        (identity: $0, child: try ForkedChild($0, useScan: features.pagemapScan))
      }
      if journal.hasBegunChildren, forked.contains(where: \.child.mayGetHugePages) {
        throw HibernationError(
          .filling, "two daemons in a row ended while they restored a child that it forked",
          aftermath: .unverifiable)
      }
      journal.hasBegunChildren = true
      for (identity, child) in forked {
        let fill: @Sendable () throws -> Void = { [before, after] in
          try child.fill(from: image, process: paged.index, before: before, after: after)
        }
        if let tracer = tracer(of: [identity], isTracing: false) {
          try tracer.perform(fill)
        } else {
          try fill()
        }
      }
    } catch let error as HibernationError {
      throw error
    } catch {
      throw HibernationError(
        .filling, "a child that it forked during its restore can't be restored: \(error)",
        aftermath: HibernationError.isTransient(error) ? .intact : .unverifiable)
    }
  }

  /// Returns the children that haven't run yet. Children of earlier forks are among them: no page
  /// of theirs is missing, so nothing is written to them.
  private func newborns(
    of parent: Int32, _ image: ImageReader, _ target: HibernationTarget
  ) throws -> [ProcessIdentity] {
    let recorded = Set(image.processes.map(\.identity))
    return try target.discover().processes.filter {
      $0.parent == parent && !recorded.contains($0.identity)
    }.filter { child in
      // Other children must not be interrupted.
      guard try isInFork(child.pid) else { return false }
      let session = try TraceSession.seize(child.identity)
      defer { session.detach() }
      return session.threads.count == 1 && session.threads[0].registers.isNewborn
    }.map(\.identity)
  }
}

/// True if the process may be in fork(2) or clone(2). It uses only what /proc shows without a stop
/// of the process.
private func isInFork(_ pid: Int32) throws(SystemCallError) -> Bool {
  let text: String
  do throws(SystemCallError) { text = try readText("/proc/\(pid)/syscall") } catch {
    // A child that isn't examined would stay without its pages.
    if error.isShortage { throw error }
    return false
  }
  guard let number = text.split(separator: " ").first.flatMap({ Int64($0) }) else { return false }
  // If the kernel hides the call of a stopped thread, the thread may be in any call.
  return clinux_is_fork(number) == 1 || number == -1 && clinux_stop_hides_calls() == 1
}

/// A child that was forked while pages were missing.
private struct ForkedChild: Sendable {
  private let memory: ProcessMemory
  private let mappings: [MemoryMapping]
  /// The pages that the child got by the fork, or from the pager before it died.
  private let populated: Set<UInt64>

  init(_ process: ProcessIdentity, useScan: Bool) throws {
    memory = try ProcessMemory(of: process)
    let pages = try PageMap(pid: process.pid, useScan: useScan)
    mappings = try MemoryMapping.all(of: process.pid).filter {
      !$0.hasFile && !$0.shared && !$0.flags.contains(.wipedOnFork)
        && !PagePlan.kernelOwned.contains($0.name)
    }
    var populated: Set<UInt64> = []
    for mapping in mappings {
      for run in try pages.populatedPages(from: mapping.start, to: mapping.end) {
        populated.formUnion(run.pages)
      }
    }
    self.populated = populated
  }

  /// True if the kernel may make huge pages in the child. A written page then adds neighbours of
  /// zeros, which a second scan would mistake for the child's own pages.
  var mayGetHugePages: Bool {
    let setting = try? readText("/sys/kernel/mm/transparent_hugepage/enabled")
    if setting?.contains("[never]") != false { return false }
    return setting?.contains("[always]") == true
      || mappings.contains { $0.flags.contains(.hugePages) }
  }

  func fill(
    from image: ImageReader, process: Int, before: PageLayout, after: PageLayout
  ) throws {
    let buffer = ChunkBuffer()
    for chunk in image.steps where chunk.isBackgroundFilled && chunk.process == process {
      var pages = try buffer.load(chunk, of: image)
      for page in chunk.ranges.flatMap(\.pages) {
        if let address = missingAddress(of: page, before, after) {
          try memory.write([PageRange(address: address, length: pageSize)], from: pages)
        }
        pages += Int(pageSize)
      }
    }
  }

  /// Returns the address at which a page is missing, or `nil` if it isn't missing. The child's
  /// mappings show which of the changes around its fork it has seen, as for a child that is reached
  /// in time.
  private func missingAddress(
    of page: UInt64, _ before: PageLayout, _ after: PageLayout
  ) -> UInt64? {
    let addresses = [after, before].lazy.compactMap { $0.currentAddress(of: page) }
    guard let address = addresses.first(where: { mapping(at: $0) != nil }) else { return nil }
    return populated.contains(address) ? nil : address
  }

  private func mapping(at address: UInt64) -> MemoryMapping? {
    let index = mappings.partitioningIndex { $0.end > address }
    return index < mappings.count && mappings[index].start <= address ? mappings[index] : nil
  }
}
