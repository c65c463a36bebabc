import Control
import Daemon
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile

/// The composition of `dormouse wrap`: a daemon with one worker, its caller's program. It composes
/// `Daemon` with another role, and starts fewer components: there is no journal, no takeover of
/// workers, no restart and no schedule.
public final class WrapComposition {
  private let settings: WrapSettings
  private let program: WrappedProgram
  /// The composed daemon. It is kept alive here for its components.
  private let daemon: Daemon
  private let run: ProgramRun
  private let process: WrappedProcess
  private let signals: WrapperSignals
  /// The guardian, if the program has a terminal. Such a program has no session of its own, so the
  /// guardian must be sent the pids of its processes.
  private let guardian: Guardian?
  private let code: IdleCodeRelease
  private let inner: InnerWrappers
  private var registration: WrapperRegistration?
  private var hostPipes: HostPipes?
  /// The path of the wrapper's own socket.
  private let socket: String
  private let caller: Caller
  private var hasEnded = false

  /// Runs the program until it ends. The program is started from this thread, which lives as long.
  public static func run(_ settings: WrapSettings) -> WrapEnd {
    // The wrapper leaves the group before it forks children, which start in its group.
    let outerGroup = OuterWrapper.leaveItsGroup()
    let end = runInItsGroup(settings)
    if case .unmanaged = end, let outerGroup { OuterWrapper.enter(outerGroup) }
    return end
  }

  private static func runInItsGroup(_ settings: WrapSettings) -> WrapEnd {
    let name = settings.name
    let socket = "\(settings.socketDirectory)/\(name).sock"
    let directory = "\(settings.stateDirectory)/wrap/\(name)"
    WrapperTree.beginInThisProcess()
    // The guardian is forked before the first thread, and before the lock, which a fork would
    // share.
    let guardian: Guardian
    do throws(SystemCallError) {
      guardian = try Guardian(directory: directory, socket: socket)
    } catch { return .unmanaged("can't start its guard process: \(error)") }
    let terminal: WrapperTerminal?
    do throws(SystemCallError) {
      terminal = try WrapperTerminal()
    } catch {
      guardian.dismiss()
      return .unmanaged("can't start the process that watches its terminal: \(error)")
    }
    // This is done before the first thread, too: each thread would get a heap of its own.
    ProgramRun.prepareProcess()
    let caller = Caller.ofThisProcess(
      announced: getenv("JPY_PARENT_PID").map { String(cString: $0) })
    if caller.servesKernels { Standard.replaceEndedInput() }
    var inheritance = settings.inheritance
    inheritance.announcement = guardian.announcement
    inheritance.keepsSession = terminal != nil
    if let terminal {
      WrapperTree.claimOrphans(except: [guardian.pid, terminal.witness.pid])
    }
    let program = WrappedProgram(
      WorkerID(name), inheritance, logPath: settings.log, host: HostName.ofThisProcess(),
      directory: settings.directory)
    let errors = terminal != nil && settings.log == nil ? DeferredErrors() : nil
    defer {
      errors?.write()
      terminal?.witness.dismiss()
      WrapStore.cleanUp(directory, socket: socket, roots: [])
      guardian.dismiss()
    }
    do throws(StartError) {
      return try WrapComposition(
        settings: settings, program: program, guardian: guardian, terminal: terminal,
        errors: errors,
        caller: caller,
        directory: directory, socket: socket
      ).runToEnd()
    } catch { return .unmanaged("\(error)") }
  }

  private init(
    settings: WrapSettings, program: WrappedProgram, guardian: Guardian,
    terminal: WrapperTerminal?, errors: DeferredErrors?, caller: Caller, directory: String,
    socket: String
  ) throws(StartError) {
    self.settings = settings
    self.program = program
    self.caller = caller
    self.socket = socket
    let store = try WrapStore(stateDirectory: settings.stateDirectory)
    store.cleanUpAfterKilledWrappers(socketDirectory: settings.socketDirectory)
    daemon = try Daemon(
      DaemonSettings(wrapping: settings, program.id, directory: directory, socket: socket),
      .wrapper(settings, program, errors: errors?.descriptor))
    // The lock of the store is held until the daemon has locked its own directory.
    withExtendedLifetime(store) {}
    run = daemon.programRun(of: program.id)
    process = WrappedProcess(run, terminal)
    self.guardian = terminal == nil ? nil : guardian
    signals = WrapperSignals(
      process, terminal, reachGroup: caller.servesKernels, timers: run.loop)
    code = IdleCodeRelease(run.loop)
    inner = InnerWrappers(watches: run.loop, timers: run.loop)
    program.connect(self)
  }

  private func runToEnd() throws(StartError) -> WrapEnd {
    defer { run.cleanUp() }
    do throws(SystemCallError) {
      try signals.listen(on: run.loop)
    } catch { throw .system(error) }
    watchHostPipes()
    run.begin()
    watchCaller()
    beginRegistration()
    run.turn { hasEnded }
    return program.end ?? .exited(CommandExit.internalError.rawValue)
  }

  /// Wakes the program when its caller ends, so that a program that checks for its caller can
  /// react. The end of its standard input would show that, too, but another process may have the
  /// other end open. A Jupyter kernel checks for its parent, which is the wrapper. So the wrapper
  /// ends it, as it would end without a wrapper.
  private func watchCaller() {
    guard let descriptor = caller.descriptor else { return }
    var token: LoopToken?
    // If the watch fails, the program is woken only by its own inputs.
    token = try? run.loop.whenReadable(descriptor) { [unowned self] in
      if let token { run.loop.unwatch(descriptor, token) }
      if let hostPipes, !hostPipes.hasBoth { hostPipes.watch() }
      if caller.servesKernels {
        run.kill("the Jupyter server that started it has ended")
      } else {
        run.wake("the end of the process that started it")
      }
    }
  }

  /// Stops the program when its host has closed both of its pipes, and the program ignores that. A
  /// single pipe is watched only when the host has ended.
  private func watchHostPipes() {
    guard let grace = settings.hostGrace else { return }
    hostPipes = HostPipes(
      needsBoth: !settings.endsWithHost, grace: grace, watches: run.loop, timers: run.loop
    ) { [unowned self] in
      let what =
        hostPipes?.hasBoth == true
        ? "its host has closed its standard input and output"
        : "its host has ended, and the other end of its pipe is closed"
      run.stop("\(what), and it hasn't ended within \(grace.text)")
    }
    if let hostPipes, hostPipes.hasBoth { hostPipes.watch() }
  }

  private func beginRegistration() {
    let registration = WrapperRegistration(
      of: WrapperRegistration.Wrapper(
        worker: program.id, socket: socket, mayBeTerminated: settings.mayBeTerminated,
        canShed: settings.shed != nil),
      to: settings.daemonSocket, timers: run.loop, watches: run.loop, run: run)
    self.registration = registration
    registration.begin()
  }
}

extension WrapComposition {
  /// True if the program is in the foreground or background now.
  var isRunning: Bool { run.state?.runs == true }

  func perform(_ step: WrappedProgram.Step) {
    switch step {
    case .sampleNow: run.sampleAgain()
    case .runs:
      guardian?.forgetDescendants()
      inner.unwatch()
      signals.programRuns()
    case .fallsAsleep:
      guardian?.record(process.pidsOutsideCgroup)
      inner.programFallsAsleep(process.innerWrappers)
      signals.programFallsAsleep()
    case .sleeps:
      guardian?.record(process.pidsOutsideCgroup)
      inner.watch(process.innerWrappers, seesStops: signals.hasTerminal) { [unowned self] in
        run.wake($0)
      }
    case .report:
      registration?.report()
      code.postpone()
    case .end:
      hasEnded = true
      // The loop checks for the end after each turn. This timer starts a turn.
      run.loop.after(.zero) {}
    }
  }
}

extension DaemonRole {
  /// The sampling pace that `idle_after` needs. While the program sleeps, only the machine's memory
  /// is measured.
  static func paceOfWrapper(idleAfter: Duration) -> SamplingPace {
    SamplingPace(
      running: min(max(idleAfter / 8, .milliseconds(100)), .seconds(2)), resting: .seconds(5))
  }

  static func wrapper(
    _ settings: WrapSettings, _ program: WrappedProgram, errors: Descriptor?
  ) -> DaemonRole {
    let directory = settings.stateDirectory
    return wrapper(
      program, log: settings.log, errors: errors,
      pace: paceOfWrapper(idleAfter: settings.policy.foreground.idleAfter),
      sharedImages: { WrapStore.imageBytes(in: directory) })
  }
}

extension DaemonSettings {
  init(wrapping settings: WrapSettings, _ id: WorkerID, directory: String, socket: String) {
    var worker = WorkerConfiguration(
      name: id.name, command: [settings.path] + settings.command.dropFirst(),
      autostart: false, policy: settings.policy)
    worker.shed = settings.shed
    var configuration = DaemonConfiguration(policy: settings.policy, workers: [worker])
    // A wrapper has to be small. If a daemon runs, that keeps a journal.
    configuration.journal.enabled = false
    self.init(
      configuration: configuration, stateDirectory: directory, socket: socket,
      // The program has its caller's environment in any case. This one is for a command of `shed`.
      environment: settings.shed == nil ? [:] : ProcessEnvironment.current().variables,
      version: settings.version,
      reload: { [configuration] in ParseResult(value: configuration, diagnostics: []) })
  }
}
