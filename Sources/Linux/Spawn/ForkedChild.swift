import CLinux
import Glibc
import Synchronization

/// A child between fork and execve. It is made on a thread that forks, because fork may wait: above
/// all a fork into a cgroup, which waits for every change of any cgroup on the machine.
/// `StartingProcess` claims the child on the thread that watches it. A child that isn't claimed is
/// killed when this object is freed.
public final class ForkedChild: Sendable {
  let process: SpawnedProcess
  public var identity: ProcessIdentity { process.identity }
  /// A pipe that polls readable when the child has executed the program, or failed.
  let report: Descriptor
  let request: SpawnRequest
  // It is marked unsafe only because of its pointer, which is set once before another thread can
  // have this object. The memory behind it, shared with the child, is read atomically
  // (clinux_spawn_step), and unmapped by `deinit`.
  nonisolated(unsafe) private let birth: clinux_birth
  private let isClaimed = Atomic(false)

  /// The number of children that exist, or are being forked, and aren't claimed. They must not be
  /// treated as orphans.
  private static let unclaimed = Atomic(0)

  /// True if a child of this process may be one that is being started. Read it after the children
  /// were listed.
  public static var anyIsUnclaimed: Bool { unclaimed.load(ordering: .sequentiallyConsistent) > 0 }

  /// Forks on the calling thread, which must live until the child has executed its program (see
  /// `clinux_spawn_begin`).
  public init(_ request: SpawnRequest) throws(SpawnError) {
    Self.unclaimed.add(1, ordering: .sequentiallyConsistent)
    var birth = clinux_birth()
    do throws(SpawnError) {
      let pid = try withPrepared(request) { (prepared: inout clinux_spawn) in
        clinux_spawn_begin(&prepared, &birth)
      }
      guard pid > 0 else { throw SpawnError(step: .fork, code: -pid, request: request) }
      report = Descriptor(owning: birth.report)
      process = try Self.makeProcess(pid, birth: &birth, request: request)
    } catch {
      Self.unclaimed.subtract(1, ordering: .sequentiallyConsistent)
      throw error
    }
    if request.permitsTracing { Yama.simulatePermission(by: process.pid) }
    self.request = request
    self.birth = birth
  }

  private static func makeProcess(
    _ pid: Int32, birth: inout clinux_birth, request: SpawnRequest
  ) throws(SpawnError) -> SpawnedProcess {
    do throws(SystemCallError) {
      let pidfd = birth.pidfd >= 0 ? Descriptor(owning: birth.pidfd) : try Descriptor.pidfd(of: pid)
      // The process is a child of this one and isn't reaped yet, so its entry in /proc exists even
      // if it has ended.
      return SpawnedProcess(
        pid: pid, pidfd: pidfd, startTime: try ProcessStat.read(pid).startTime)
    } catch {
      // A process without a descriptor must not continue to run unobserved. SIGCHLD reports its
      // end.
      kill(pid, SIGKILL)
      clinux_spawn_forget(&birth)
      throw SpawnError(step: .openPidfd, code: error.code, request: request)
    }
  }

  deinit {
    if !isClaimed.load(ordering: .relaxed) {
      clinux_pidfd_send_signal(process.pidfd.raw, SIGKILL)
      // If it hasn't ended yet, SIGCHLD reports its end, and it is reaped with the orphans.
      process.reapIfEnded()
      Self.unclaimed.subtract(1, ordering: .sequentiallyConsistent)
    }
    var birth = birth
    clinux_spawn_forget(&birth)
  }

  /// Marks the child as claimed: its owner now watches it.
  func claim() {
    guard !isClaimed.exchange(true, ordering: .relaxed) else { return }
    Self.unclaimed.subtract(1, ordering: .sequentiallyConsistent)
  }

  /// Lets the child execute its program; see `SpawnRequest.waitsForRelease`. Any thread may call
  /// it, more than once.
  public func release() {
    var birth = birth
    clinux_spawn_release(&birth)
  }

  /// The last step that the child has begun.
  var step: Int32 {
    var birth = birth
    return clinux_spawn_step(&birth)
  }
}

/// The thread on which the daemon forks. It lives as long as the daemon, because a child that
/// hasn't executed its program yet ends with the thread that forked it.
public final class ForkThread: Sendable {
  public static let shared = ForkThread()

  private let queue = WorkQueue(name: "dormouse-fork")

  /// Forks and waits until the child exists. Don't call it on the event loop's thread.
  public func fork(_ request: SpawnRequest) throws(SpawnError) -> ForkedChild {
    try queue.perform { Result { () throws(SpawnError) in try ForkedChild(request) } }.get()
  }
}
