import CLinux
import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile

// `dormouse wrap`: a daemon of one worker that is nobody's but its caller's.

extension Daemon {
  /// Runs the program to its end. It is started from this thread, which lives as long.
  public static func wrap(_ settings: WrapSettings) -> WrapEnd {
    let name = settings.name
    let socket = "\(settings.socketDirectory)/\(name).sock"
    let directory = "\(settings.stateDirectory)/wrap/\(name)"
    // Before the first thread, and before the lock, which a fork would share.
    let guardian: Guardian
    do throws(SystemCallError) {
      guardian = try Guardian(directory: directory, socket: socket)
    } catch { return .unmanaged("no process can be made to guard it: \(error)") }
    let wrapped = Wrapped(settings, name: name, guardian: guardian)
    defer {
      WrapStore.clearAway(directory, socket: socket, known: [])
      guardian.dismiss()
    }
    do throws(StartError) {
      return try make(wrapped, directory: directory, socket: socket).runWrapped()
    } catch { return .unmanaged("\(error)") }
  }

  private static func make(
    _ wrapped: Wrapped, directory: String, socket: String
  ) throws(StartError) -> Daemon {
    let settings = wrapped.settings
    let store = try WrapStore(stateDirectory: settings.stateDirectory)
    store.clearAwayRemains(socketDirectory: settings.socketDirectory)
    // Until it has locked its own directory.
    defer { withExtendedLifetime(store) {} }
    return try Daemon(
      DaemonSettings(wrapped: wrapped, directory: directory, socket: socket), wrapped: wrapped)
  }

  private func runWrapped() throws(StartError) -> WrapEnd {
    guard let wrapped else { return .unmanaged("") }
    defer { log.drain() }
    defer { cgroups?.remove() }
    clinux_keep_heap_small()
    // Whoever loses its parent stays below us: so all of them are found without a look at all of
    // /proc.
    clinux_become_subreaper()
    clinux_raise_descriptor_limit()
    useWorkersOOMScore()
    clinux_stay_out_of_core_files()
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    do throws(SystemCallError) {
      try loop.watch(mailbox.descriptor, .readable) { [unowned self] _ in
        mailbox.drain(self, on: loop)
      }
      try passSignals()
    } catch { throw .system(error) }
    do throws(StartError) {
      try openControlSocket()
    } catch { log(.notice, "nobody can ask about it: \(error)") }
    pressureMonitor.follow(engine.policy)
    FillReports.follow(hibernation, loopReturn, log) { [unowned self] in
      senses.meter.measure($0)
    }
    declared.introduceWorkers(settings.configuration.workers)
    request(.start, wrapped.id) { _ in }
    senses.sampling.sampleRegularly()
    watchCaller()
    register()
    do throws(SystemCallError) {
      while !ending.hasEnded {
        try loop.turn(until: driver.nextDeadline)
        driver.passDeadlines()
      }
    } catch { log(.error, "\(error)") }
    records.drain()
    disk.drain(within: .seconds(2))
    server?.close()
    return wrapped.end ?? .exited(CommandExit.internalError.rawValue)
  }

  /// A worker's state has changed.
  func noteWrapped(_ transition: Transition) {
    guard let wrapped else { return }
    if transition.from == .resuming, transition.to.runs {
      wrapped.wakes += 1
      sampleAnew()
    }
    if engine.state(of: wrapped.id)?.runs == true { deliverWaitingSignals() }
    if !transition.to.isPassing { wrapped.registration?.report() }
    guard transition.to == .terminated else { return }
    if wrapped.end == nil {
      wrapped.end = .notStarted(transition.cause.failure ?? transition.cause.sentence)
    }
    ending.endAtOnce()
  }

  /// From now on it is looked at again as often as what runs is.
  private func sampleAnew() {
    guard let wrapped, let runtime = workers[wrapped.id] else { return }
    senses.sampling.sampleAnew(runtime)
  }

  /// A program that looks whether its caller is there wants to be awake for it. Its standard input
  /// would tell it as well, but others may hold the other end.
  private func watchCaller() {
    guard let wrapped, let caller = wrapped.caller else { return }
    var token: EventLoop.Token?
    token = try? loop.watch(caller, .readable) { [unowned self] _ in
      if let token { loop.unwatch(caller, token) }
      driver.send(.wakeNeeded(wrapped.id, "the end of the process that started it"))
    }
  }
}

extension DaemonSettings {
  fileprivate init(wrapped: Wrapped, directory: String, socket: String) {
    let settings = wrapped.settings
    let worker = WorkerConfiguration(
      name: wrapped.id.name, command: [settings.path] + settings.command.dropFirst(),
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

extension WorkerState {
  /// Over in a moment.
  fileprivate var isPassing: Bool {
    self == .suspending || self == .hibernating || self == .resuming
  }
}

extension Cause {
  fileprivate var failure: String? {
    if case .failed(let why) = self { return why }
    return nil
  }
}

extension WrapEnd {
  init(_ status: ExitStatus) {
    self =
      switch status {
      case .exited(let code): .exited(code)
      case .signaled(let signal): .signaled(signal)
      case .outOfMemory: .signaled(SIGKILL)
      case .unknown: .notStarted("nobody knows how it ended")
      }
  }

  /// Ends this process in the same way.
  public func perform() -> Never {
    switch self {
    case .exited(let code): exit(code)
    case .signaled(let signal):
      clinux_end_by_signal(signal)
      exit(128 + signal)
    case .notStarted: exit(CommandExit.cannotRun.rawValue)
    case .unmanaged: exit(CommandExit.notDone.rawValue)
    }
  }
}
