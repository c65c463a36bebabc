import Hibernation
import Lifecycle
import Linux
import Supervision

/// The state in which a sleeping worker was found: a worker of an earlier daemon, or one of which
/// an operation had no outcome.
enum SurvivorState: Sendable {
  /// The worker sleeps as its record or the last operation says: suspended, or hibernated in the
  /// image.
  case asleep(WorkerState, ImageOnDisk?)
  /// The worker is suspended as its record says, with this memory in the image of a trim.
  case trimmed(MissingBytes)
  /// The worker is hibernated, and there is no image at this path.
  case withoutImage(String)
  /// Recovery has to verify the worker's memory, and lets it run.
  case inDoubt
}

// These functions handle what an earlier daemon has left: its workers' processes, memory and
// images. They run while the daemon starts, and may wait.
extension KernelMemory {
  func openProcess(
    _ process: ProcessIdentity, _ plan: LaunchPlan
  ) throws(SystemCallError) -> WorkerProcess {
    try WorkerProcess.adopt(process, plan: plan)
  }

  func tree(of process: WorkerProcess) throws(SystemCallError) -> ProcessTree {
    try process.tree()
  }

  func openMemories(of process: WorkerProcess) throws(SystemCallError) {
    try process.refreshMemory()
  }

  func survivorState(of target: HibernationTarget, by record: WorkerRecord) -> SurvivorState {
    let path = state.image(of: record.name)
    switch record.state {
    case WorkerState.hibernated.rawValue:
      let expected = ImageExpectation.of(record)
      if let absence = expected.absence(of: path) {
        if absence.aftermath == .unverifiable { return .withoutImage(path) }
        services.log(.error, "\(record.name): sleeps on: \(absence)")
      } else if !Hibernator.isAtRest(target, on: path, expecting: expected) {
        return .inDoubt
      }
      return .asleep(
        .hibernated,
        ImageOnDisk(
          resting: RestingImage(path: path, expecting: expected),
          length: Hibernator.lengthOnDisk(of: path)))
    case WorkerState.suspended.rawValue:
      // A hibernation may have begun without being recorded.
      guard isAbsent(path + ".partial"), Hibernator.isAtRest(target, on: nil) else {
        return .inDoubt
      }
      if isAbsent(path) {
        if Hibernator.mayNeedImage(target) { return .inDoubt }
        // Only the earlier daemon could use the base that it has left, and would have removed it.
        Hibernator.removeUnlessNeeded(path)
        return .asleep(.suspended, nil)
      }
      let missing = Hibernator.missingOfSuspended(target, image: path)
      return missing.map { .trimmed($0) } ?? .inDoubt
    default: return .inDoubt
    }
  }

  func findInputs(
    of target: HibernationTarget, daemonSockets: Set<String>, answering ports: Set<UInt16>,
    then: @escaping (Result<any WakeInputs, SystemCallError>) -> Void
  ) -> OperationFlag {
    perform(about: target.name, then: then) {
      Result { () throws(SystemCallError) in
        let tree = try ProcessTree.discover(
          root: target.root, session: target.session, cgroup: target.cgroup)
        return try WakeSources(of: tree, daemonSockets: daemonSockets, answering: ports)
      }
    }
  }

  // MARK: workers that can't be adopted

  func serveUnadopted(except isManaged: (String) -> Bool) {
    let suffix = ".image"
    // If the directory can't be read, no pager can read an image in it either.
    for file in (try? listDirectory(state.images)) ?? [] where file.hasSuffix(suffix) {
      let name = String(file.dropLast(suffix.count))
      let path = state.image(of: name)
      guard !isManaged(name), let target = Hibernator.runningWorker(name, missing: path) else {
        continue
      }
      services.log(.notice, "\(name): it isn't adopted, and gets its missing pages nevertheless")
      standby.startStandbyPager()
      serve(target, from: path)
    }
  }

  /// - Parameter isRepeated: the failure was logged before.
  private func serve(
    _ target: HibernationTarget, from path: String, isRepeated: Bool = false
  ) {
    let (_, done) = callback { (outcome: Result<ResumeSummary, HibernationError>) in
      guard case .failure(let error) = outcome, error.aftermath != .vanished else { return }
      if !isRepeated {
        services.log(.error, "\(target.name): its missing pages can't be filled in: \(error)")
      }
      if error.aftermath == .unverifiable {
        // It would run on wrong memory. If it can't be killed, its threads wait for their pages.
        services.mechanics.submit(about: target.name) { _ = try? target.cgroup?.kill() }
      } else {
        services.loop.after(.seconds(10)) { serve(target, from: path, isRepeated: true) }
      }
    }
    services.hibernation.recover(target, from: path, keepsTrims: true, then: done)
  }

  // MARK: ended workers

  func removeRemains(of record: WorkerRecord) {
    if record.bootID == bootID, record.external == nil { removeGroup(of: record) }
    discardFile(state.trimRecord(of: record.name))
    removeImage(of: record.name, isUnreadableNeeded: false)
  }

  /// Ends the remaining processes in the cgroup of a worker whose root process has ended, as a
  /// running daemon would have done. Only a cgroup shows reliably which processes belong to the
  /// worker.
  private func removeGroup(of record: WorkerRecord) {
    guard let path = record.cgroupPath, fileExists(path) else { return }
    do throws(CgroupError) {
      let group = try WorkerCgroup(path: path)
      // A record that couldn't be replaced is of an earlier run. The group may be the next run's.
      if let inode = record.cgroupInode, inode != group.inode { return }
      try group.kill()
      try group.remove(until: Deadline(in: .seconds(1)))
    } catch { services.log(.warning, "\(record.name): \(error)") }
  }

  func removeOrphanedImages(except isRecorded: (String) -> Bool) {
    var workers: Set<String> = []
    // If the directory can't be read, all that is in it stays.
    for name in (try? listDirectory(state.images)) ?? [] {
      guard
        let suffix = [".image", ".image.partial", ".image.base", ".image.base.partial"].first(
          where: name.hasSuffix),
        !isRecorded(String(name.dropLast(suffix.count)))
      else { continue }
      workers.insert(String(name.dropLast(suffix.count)))
    }
    for worker in workers.sorted() { removeImage(of: worker, isUnreadableNeeded: true) }
  }

  private func removeImage(of worker: String, isUnreadableNeeded: Bool) {
    let path = state.image(of: worker)
    // An image that is only partly written isn't the only copy of the memory: memory is freed when
    // the image is complete.
    discardFile(path + ".partial")
    if let obstacle = Hibernator.removeUnlessNeeded(path, isUnreadableNeeded: isUnreadableNeeded) {
      services.log(.error, "\(worker): its image \(path) is kept: \(obstacle)")
    }
  }
}

extension WorkerRecord {
  /// The worker's cgroup; nil: it has none.
  func cgroup() throws -> WorkerCgroup? {
    try cgroupPath.map { try WorkerCgroup(path: $0, isExternal: external != nil) }
  }

  /// The record, corrected if the worker's cgroup notes that the worker was resumed from the image
  /// that the record names. Then the record only couldn't be written after the resume, and the
  /// worker may run.
  func correctedByNote() -> WorkerRecord {
    guard state == WorkerState.hibernated.rawValue, let imageMark else { return self }
    do {
      guard let group = try cgroup(), try ResumeMarker.read(of: group)?.text == imageMark else {
        return self
      }
    } catch {
      // Without the cgroup there is no note. The record is right unless a note contradicts it.
      return self
    }
    var corrected = self
    corrected.state = WorkerState.background.rawValue
    corrected.imageMark = nil
    return corrected
  }
}

extension ImageExpectation {
  /// What to expect of a worker's image, by its record. Only a worker that is recorded as
  /// hibernated is certain to have its memory in an image: a resume is recorded before the image is
  /// removed. A hibernation is recorded before the image gets its name.
  static func of(_ record: WorkerRecord) -> ImageExpectation {
    let directory = record.imageDirectory.flatMap(ImageDirectory.init(text:))
    switch WorkerState(rawValue: record.state) {
    case .hibernated:
      guard let mark = record.imageMark.flatMap(ImageMark.init(text:)) else { return .hibernated }
      return .image(mark, in: directory)
    case .hibernating, .resuming, .terminating, .terminated, nil: return .unknown(in: directory)
    case .launching, .foreground, .background, .suspending, .suspended:
      return .awake(in: directory)
    }
  }
}
