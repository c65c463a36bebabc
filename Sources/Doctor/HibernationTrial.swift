import Control
import Glibc
import Hibernation
import Linux

/// One complete hibernation. A shell with 1 MB of memory is suspended, hibernated and resumed, and
/// then checks its memory.
public struct HibernationTrial {
  public typealias Outcome = DoctorReport.Trial

  /// The directory for the image.
  var directory: String
  /// The cgroup in which the shell is frozen; nil if it is stopped and traced.
  var cgroup: WorkerCgroup?

  /// A script that builds a text of 1 MB, waits, builds it again, and prints whether the two are
  /// equal.
  static let script = """
    build() { x=dormouse; while [ ${#x} -lt 1000000 ]; do x=$x$x; done; }
    build; kept=$x; x=; echo ready
    read word; build; [ "$x" = "$kept" ] && echo "same $word"
    """

  func run() throws -> Outcome {
    let child = try ProbeChild(Self.script, cgroup: cgroup)
    defer { child.end() }
    guard try child.line() == "ready" else { throw ProbeFailure("the shell did not start") }
    let target = try target(child)
    try suspend(target)

    let service = HibernationService()
    let path = "\(directory)/trial.image"
    // The service forgets the process before it is reaped: a process that is still traced can't be
    // reaped.
    defer {
      sendSignal(SIGKILL, to: child.pid)
      // Forgetting throws nothing, but waiting for it has this error type.
      try? service.wait { (hibernator) throws(HibernationError) in hibernator.forget(target.name) }
      discardFile(path)
    }
    let hibernation = try service.wait { (hibernator) throws(HibernationError) in
      try hibernator.hibernate(HibernationRequest(target, to: path))
    }
    let resume = try service.wait { (hibernator) throws(HibernationError) in
      try hibernator.resume(target, from: hibernation.image)
    }
    try child.send("again")
    guard try child.line() == "same again" else {
      throw ProbeFailure("the shell's memory was not the same after the resume; please report this")
    }
    return Outcome(
      rest: cgroup == nil ? .traced : .frozen, movedBytes: hibernation.moved,
      imageBytes: hibernation.imageLength, hibernateSeconds: hibernation.duration / .seconds(1),
      resumeSeconds: resume.duration / .seconds(1))
  }

  private func target(_ child: ProbeChild) throws -> HibernationTarget {
    // The memory is opened at the start, as the daemon does it.
    let memory = try Descriptor.open("/proc/\(child.pid)/mem", O_RDWR)
    return HibernationTarget(
      name: "doctor", root: child.process.identity, session: child.pid, cgroup: cgroup,
      memories: [child.pid: memory])
  }

  private func suspend(_ target: HibernationTarget) throws {
    let deadline = Deadline(in: .seconds(5))
    if let cgroup { return try cgroup.freeze(until: deadline) }
    _ = try ProcessTree.stopAll(root: target.root, session: target.session, until: deadline)
  }
}

extension Examination {
  /// Tries a hibernation. The shell is frozen if that works here. If not, or if that hibernation
  /// fails, it is traced.
  func tryHibernation() -> (check: DoctorCheck, outcome: HibernationTrial.Outcome?) {
    var outcome: HibernationTrial.Outcome?
    var failures: [String] = []
    for cgroup in groups where outcome == nil {
      do {
        outcome = try withImageDirectory {
          try HibernationTrial(directory: $0, cgroup: cgroup).run()
        }
      } catch {
        failures.append("\(cgroup == nil ? "traced" : "frozen"): \(error)")
      }
    }
    let check = DoctorCheck(
      id: "hibernation", name: "hibernation as a whole", need: .required,
      result: outcome == nil ? .missing : failures.isEmpty ? .works : .limited,
      found: ([outcome?.sentence].compactMap(\.self) + failures).joined(separator: "; "),
      lost: "Workers are suspended and keep their memory.", enable: "what is missing above.")
    return (check, outcome)
  }

  private var groups: [WorkerCgroup?] {
    if freezes, case .success(let probeGroup) = group { return [probeGroup.group, nil] }
    return [nil]
  }

  private func withImageDirectory<Value>(_ body: (String) throws -> Value) throws -> Value {
    if let directory { return try body(directory.usable) }
    let parent = getenv("TMPDIR").map { String(cString: $0) }
    let temporary = try BorrowedDirectory(
      newIn: parent.flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp", prefix: "dormouse-doctor-")
    defer { temporary.end() }
    return try body(temporary.usable)
  }
}

extension HibernationTrial.Outcome {
  fileprivate var sentence: String {
    "\(sizeText(Int64(clamping: movedBytes))) left memory in \(durationText(hibernateSeconds)) "
      + "(image: \(sizeText(Int64(clamping: imageBytes)))) and came back in "
      + "\(durationText(resumeSeconds)); rested \(rest.rawValue)"
  }
}
