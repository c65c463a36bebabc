import Glibc
import Linux

/// A program that runs beside a worker and on its behalf, such as the command of a probe or of
/// `shed:`. The object covers its whole life, from the request to run it. No method blocks. The
/// event loop's thread watches `descriptor` and calls `proceed` when that is readable.
///
///     preparing ──▶ starting ──▶ running ──▶ ended
///         └────────────┴────▶ failed           any of them ──cancel──▶ cancelled
///
/// While it is *preparing*, a thread that may block (`JobPool.files`) finds the program, opens its
/// files and forks. *Starting* is the time from fork to execve. The owner sets the deadline.
public final class SideProgram {
  public enum Phase: Hashable, Sendable {
    case preparing, starting, running
    case ended(WorkerExit)
    case failed(LaunchError)
    case cancelled
  }

  public private(set) var phase = Phase.preparing
  private var preparation: (result: LateResult<Preparation>, ready: EventCounter)?
  private var start: StartingProcess?
  private var process: SpawnedProcess?
  private let began = Clocks.monotonic
  private let remover: ProcessRemover

  private typealias Preparation = Result<ForkedChild, LaunchError>

  /// The descriptor to watch, or nil when the program is over.
  public var descriptor: Descriptor? {
    switch phase {
    case .preparing: preparation?.ready.descriptor
    case .starting: start?.report
    case .running: process?.pidfd
    case .ended, .failed, .cancelled: nil
    }
  }

  /// The pid of a child of this process that nothing else may reap.
  public var pid: Int32? { process?.pid ?? start?.process.pid }

  public var isOver: Bool { descriptor == nil }

  /// - Parameters:
  ///   - subject: identifies what may block, for example the worker.
  ///   - prepare: is called on a thread of `jobs`.
  init(
    about subject: String, jobs: JobPool = .files, remover: ProcessRemover = .shared,
    _ prepare: @escaping @Sendable () throws(LaunchError) -> PreparedLaunch
  ) {
    self.remover = remover
    let result = LateResult<Preparation>()
    do throws(SystemCallError) {
      let ready = try EventCounter()
      preparation = (result, ready)
      let isAccepted = jobs.submitIfIdle(about: subject) {
        let prepared: Preparation
        do throws(LaunchError) { prepared = .success(try Self.fork(try prepare())) } catch {
          prepared = .failure(error)
        }
        let isWanted = result.set(prepared)
        return { if isWanted { ready.signal() } }
      }
      if !isAccepted { fail(.stuck("an earlier command still waits for a file system")) }
    } catch { fail(.log(error)) }
  }

  deinit { cancel() }

  /// Continues after `descriptor` became readable.
  public func proceed() {
    switch phase {
    case .preparing: begin()
    case .starting: checkStart()
    case .running: checkEnd()
    case .ended, .failed, .cancelled: break
    }
  }

  private func begin() {
    guard let prepared = preparation?.result.consume() else { return }
    preparation = nil
    do throws(LaunchError) {
      let started = StartingProcess(try prepared.get())
      WrapperTree.exclude(started.process.pid)
      start = started
      phase = .starting
      checkStart()
    } catch { fail(error) }
  }

  private static func fork(_ launch: PreparedLaunch) throws(LaunchError) -> ForkedChild {
    defer { launch.dispose() }
    do throws(SpawnError) { return try ForkThread.shared.fork(launch.request) } catch {
      throw .spawn(error)
    }
  }

  private func checkStart() {
    do throws(SpawnError) {
      guard let started = try start?.poll() else { return }
      process = started
      start = nil
      phase = .running
    } catch { fail(.spawn(error)) }
  }

  private func checkEnd() {
    guard let process else { return }
    let exit: WorkerExit
    do throws(SystemCallError) {
      guard let reaped = try reapChild(process.pidfd, pid: process.pid) else { return }
      exit = reaped
    } catch {
      // Something else has reaped it. It has ended, and its pidfd stays readable: watching that
      // further would keep the event loop busy.
      exit = .unknown
    }
    WrapperTree.forget(process.pid)
    self.process = nil
    phase = .ended(exit)
  }

  private func fail(_ error: LaunchError) {
    if let start { WrapperTree.forget(start.process.pid) }
    start = nil
    preparation = nil
    phase = .failed(error)
  }

  /// The reason why it doesn't run yet although its time has passed. It is nil if it runs or is
  /// over.
  public var hang: String? {
    let time = Duration.nanoseconds(Clocks.monotonic - began)
    switch phase {
    case .preparing:
      return "its program and files can't be opened within \(time.components.seconds) s: "
        + "check their file system"
    case .starting: return start?.hangError(after: time)?.description
    case .running, .ended, .failed, .cancelled: return nil
    }
  }

  /// Sends SIGTERM to its process group, which it leads. `cancel` later ends the processes that are
  /// left.
  public func requestEnd() {
    // It hasn't been reaped yet, so no other process has its pid.
    if let process { sendSignal(SIGTERM, to: -process.pid) }
  }

  /// Ends its processes that still run. The call doesn't wait for their end.
  public func cancel() {
    guard !isOver else { return }
    preparation?.result.abandon()
    preparation = nil
    if let start {
      start.abandon()
      WrapperTree.forget(start.process.pid)
    }
    start = nil
    if let process { remover.remove(process) }
    process = nil
    phase = .cancelled
  }
}

extension WorkerProcess {
  /// Runs a command for the worker: in its directory, with its log, and with its environment except
  /// for the sockets to the daemon. The command isn't in the worker's cgroup: its memory isn't the
  /// worker's, and freezing the worker must not stop it.
  ///
  /// - Parameter keepsOutput: whether the output is written to the worker's log. Otherwise it is
  ///   dropped.
  package func runBeside(
    _ arguments: [String], as purpose: String, keepsOutput: Bool = true
  ) -> SideProgram {
    let (plan, pid) = (plan, identity.pid)
    return SideProgram(about: "\(purpose) of \(plan.name)") { () throws(LaunchError) in
      try plan.prepareBeside(arguments, pid: pid, keepsOutput: keepsOutput)
    }
  }
}
