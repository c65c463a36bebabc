import CLinux
import Glibc
import Linux

/// What a resume did.
public struct ResumeSummary: Sendable {
  /// Bytes written back.
  public var restored: UInt64
  public var duration: Duration
}

extension Hibernator {
  /// Brings a hibernated worker back and lets it run.
  ///
  /// - Throws: `HibernationError`. `intact`: it is hibernated as before. `unprovable`: the image is
  ///   damaged or the write-back failed half-way; the worker must be killed.
  @discardableResult
  public func resume(
    _ target: HibernationTarget, from path: String
  ) throws(HibernationError) -> ResumeSummary {
    let started = Clocks.monotonic
    let restored = try bringBack(target, from: path, run: true)
    clinux_trim_own_memory()
    return ResumeSummary(
      restored: restored, duration: .nanoseconds(Clocks.monotonic - started))
  }

  /// Writes back, commits (B), and lets the worker run or leaves it suspended.
  @discardableResult
  func bringBack(
    _ target: HibernationTarget, from path: String, run: Bool
  ) throws(HibernationError) -> UInt64 {
    let image: ImageReader
    do throws(ImageError) {
      image = try ImageReader(path: path)
    } catch { throw HibernationError(.reading, error.description, .unprovable) }

    try checkIdentities(image)
    try checkAtRest(target)
    let memories = try attempt(.writingBack) {
      try image.processes.map { try target.memory(of: $0.pid) }
    }
    FaultPoint.writingBack.pass()
    do {
      try WriteBack(image: image, memories: memories).run(lanes: lanes)
    } catch {
      let failure = HibernationError.from(error, in: .writingBack)
      throw HibernationError(
        .writingBack, failure.reason, failure.aftermath == .vanished ? .vanished : .unprovable)
    }
    FaultPoint.writtenBack.pass()

    // Commit B. From here on the worker's memory is the truth.
    if unlink(path) != 0 {
      throw HibernationError(
        .writingBack, "can't remove \(path): \(String(cString: strerror(errno)))")
    }
    FaultPoint.unlinked.pass()
    for session in resting.removeValue(forKey: target.name) ?? [] { session.detach() }
    if run { try attempt(.waking) { try target.wake() } }
    return image.dataLength
  }

  /// The processes of the image, and not others that got their numbers.
  private func checkIdentities(_ image: ImageReader) throws(HibernationError) {
    for process in image.processes {
      let identity = ProcessIdentity(pid: process.pid, startTime: process.startTime)
      guard identity.isAlive else {
        throw HibernationError(.writingBack, "process \(process.pid) has ended", .vanished)
      }
    }
  }

  /// Nobody may have let it run: its memory was not there.
  private func checkAtRest(_ target: HibernationTarget) throws(HibernationError) {
    if resting[target.name] != nil { return }
    guard let cgroup = target.cgroup else {
      throw HibernationError(
        .writingBack, "nobody has held it since it was hibernated", .unprovable)
    }
    let frozen = try attempt(.writingBack) { try cgroup.isFrozen }
    if !frozen {
      throw HibernationError(
        .writingBack, "somebody has thawed it while its memory was away", .unprovable)
    }
  }
}
