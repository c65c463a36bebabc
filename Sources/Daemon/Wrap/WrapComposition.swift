import CLinux
import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile

/// `dormouse wrap`: a daemon of one worker, its caller's program. `Daemon` is composed with another role,
/// and fewer of its parts begin: no journal, no earlier daemon's workers, no restarts, no schedules.
public final class WrapComposition {
  private let settings: WrapSettings
  private let program: WrappedProgram
  private let daemon: Daemon
  private let signals: PassedSignals
  private let code: IdleCodeRelease
  private var registration: WrapperRegistration?
  /// The process that has started the wrapper.
  private let caller: Descriptor?
  private var hasEnded = false

  /// Runs the program to its end. It is started from this thread, which lives as long.
  public static func run(_ settings: WrapSettings) -> WrapEnd {
    let name = settings.name
    let socket = "\(settings.socketDirectory)/\(name).sock"
    let directory = "\(settings.stateDirectory)/wrap/\(name)"
    // Before the first thread, and before the lock, which a fork would share.
    let guardian: Guardian
    do throws(SystemCallError) {
      guardian = try Guardian(directory: directory, socket: socket)
    } catch { return .unmanaged("can't start its guard process: \(error)") }
    // Nothing to watch: it has ended already.
    let caller = try? Descriptor.pidfd(of: getppid())
    var inheritance = settings.inheritance
    inheritance.announcement = guardian.announcement
    let program = WrappedProgram(WorkerID(name), inheritance, logPath: settings.log)
    defer {
      WrapStore.clearAway(directory, socket: socket, known: [])
      guardian.dismiss()
    }
    do throws(StartError) {
      return try WrapComposition(
        settings, program, caller, directory: directory, socket: socket
      ).run()
    } catch { return .unmanaged("\(error)") }
  }

  private init(
    _ settings: WrapSettings, _ program: WrappedProgram, _ caller: Descriptor?,
    directory: String, socket: String
  ) throws(StartError) {
    self.settings = settings
    self.program = program
    self.caller = caller
    let store = try WrapStore(stateDirectory: settings.stateDirectory)
    store.clearAwayRemains(socketDirectory: settings.socketDirectory)
    let daemon = try Daemon(
      DaemonSettings(wrapping: settings, program.id, directory: directory, socket: socket),
      .wrapper(settings, program))
    // Until the daemon has locked its own directory.
    withExtendedLifetime(store) {}
    self.daemon = daemon
    signals = PassedSignals(
      WrappedProcess(program.id, daemon.workers, daemon.driver) { [unowned daemon] in
        daemon.hibernation.reapChildren()
        daemon.orphans.reapOrphans()
      })
    code = IdleCodeRelease(daemon.loop)
    program.connect(self)
  }

  private func run() throws(StartError) -> WrapEnd {
    defer { daemon.log.drain() }
    defer { daemon.cgroups?.remove() }
    prepareProcess()
    do throws(SystemCallError) {
      try signals.listen(on: daemon.loop)
    } catch { throw .system(error) }
    do throws(StartError) {
      try daemon.controlHost.openControlSocket()
    } catch { daemon.log(.notice, "can't open a control socket: \(error)") }
    daemon.pressureMonitor.follow(daemon.engine.policy)
    FillReports.follow(daemon.hibernation, daemon.loopReturn, daemon.log) { [unowned daemon] in
      daemon.senses.meter.measure($0)
    }
    daemon.declared.introduceWorkers(daemon.settings.configuration.workers)
    daemon.request(.start, program.id) { _ in }
    daemon.senses.sampling.sampleRegularly()
    watchCaller()
    beginRegistration()
    turn()
    daemon.records.drain()
    daemon.disk.drain(within: .seconds(2))
    daemon.server?.close()
    return program.end ?? .exited(CommandExit.internalError.rawValue)
  }

  private func prepareProcess() {
    clinux_keep_heap_small()
    // Whatever loses its parent stays below us: so all of it is found without a look at all of /proc.
    clinux_become_subreaper()
    clinux_raise_descriptor_limit()
    daemon.useWorkersOOMScore()
    clinux_stay_out_of_core_files()
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
  }

  private func turn() {
    do throws(SystemCallError) {
      while !hasEnded, !daemon.ending.hasEnded {
        try daemon.loop.turn(until: daemon.driver.nextDeadline)
        daemon.driver.passDeadlines()
      }
    } catch { daemon.log(.error, "\(error)") }
  }

  /// A program that looks whether its caller is there wants to be awake for it. Its standard input
  /// would say it as well, but others may hold the other end.
  private func watchCaller() {
    guard let caller else { return }
    let (loop, driver, id) = (daemon.loop, daemon.driver, program.id)
    var token: EventLoop.Token?
    // Without a watch, what the program itself reads wakes it.
    token = try? loop.watch(caller, .readable) { [unowned loop] _ in
      if let token { loop.unwatch(caller, token) }
      driver.send(.wakeNeeded(id, "the end of the process that started it"))
    }
  }

  private func beginRegistration() {
    let registration = WrapperRegistration(
      of: WrapperRegistration.Wrapper(
        worker: program.id, socket: daemon.settings.socket,
        mayBeTerminated: settings.mayBeTerminated),
      to: settings.daemonSocket, daemon.loop, daemon.loop, self)
    self.registration = registration
    registration.begin()
  }
}

extension WrapComposition: WrappedProgramHost {
  var isRunning: Bool { daemon.engine.state(of: program.id)?.runs == true }

  func sampleNow() {
    if let runtime = daemon.workers[program.id] { daemon.senses.sampling.sampleAnew(runtime) }
  }

  func deliverWaitingSignals() { signals.deliverWaiting() }

  func reportState() {
    registration?.report()
    code.postpone()
  }

  func programHasEnded() {
    hasEnded = true
    // The loop looks at it after its turn; this makes it turn.
    daemon.loop.after(.zero) {}
  }
}

extension WrapComposition: RegistrationHost {
  var footprint: ByteCount { daemon.engine.footprint(of: program.id) }

  func withReport(then: @escaping (WorkerReport) -> Void) {
    let request = ControlRequest(id: 0, verb: .status, worker: program.id.name)
    daemon.senses.scanner.withRecentScan(of: daemon.workers.values) { [unowned self] scan in
      if let report = daemon.statusReporter.report(request, scan).workers?.first { then(report) }
    }
  }

  /// The way to its socket may lead through a file system that doesn't answer.
  func connect(to path: String, then: @escaping (Descriptor?) -> Void) {
    daemon.jobs.run(about: "daemon at \(path)", within: .seconds(5)) {
      // None runs, mostly: that is no failure.
      try? UnixSocket.connected(to: path, .stream)
    } then: { outcome in
      if case .done(let found) = outcome { then(found) } else { then(nil) }
    }
  }
}

extension DaemonRole {
  /// Often enough for `idle_after`, and no oftener; asleep, only the machine's memory is looked at.
  static func paceOfWrapper(idleAfter: Duration) -> RegularSampling.Pace {
    RegularSampling.Pace(
      running: min(max(idleAfter / 8, .milliseconds(100)), .seconds(2)), resting: .seconds(5))
  }

  static func wrapper(_ settings: WrapSettings, _ program: WrappedProgram) -> DaemonRole {
    let directory = settings.stateDirectory
    return DaemonRole(
      log: DaemonLog(ofWrapper: settings.log), hasSuccessor: false,
      // It shares its group with its caller.
      leavesCgroup: false, looksAtDescendantsOnly: true,
      pace: paceOfWrapper(idleAfter: settings.policy.foreground.idleAfter), metersWork: true,
      sharedImages: { WrapStore.imageBytes(in: directory) }, program: program)
  }
}

extension DaemonSettings {
  init(wrapping settings: WrapSettings, _ id: WorkerID, directory: String, socket: String) {
    let worker = WorkerConfiguration(
      name: id.name, command: [settings.path] + settings.command.dropFirst(),
      autostart: false, policy: settings.policy)
    var configuration = DaemonConfiguration(policy: settings.policy, workers: [worker])
    // A wrapper has to be small, and its daemon, where there is one, keeps a journal.
    configuration.journal.enabled = false
    self.init(
      configuration: configuration, stateDirectory: directory, socket: socket, environment: [:],
      version: settings.version,
      reload: { [configuration] in ParseResult(value: configuration, diagnostics: []) })
  }
}
