import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The sockets of `listen`. The daemon opens them, and they outlive the runs of their worker. While
/// the worker is down, a client that connects waits, or starts the worker. Belongs to the loop's
/// thread.
final class ListeningSockets {
  /// A worker that always ends without accepting the connection is started only this many times
  /// within `startsWithin`.
  private static let maxStarts = 5
  private static let startsWithin = Duration.seconds(10)
  private static let pause = Duration.seconds(5)

  private let watches: any DescriptorWatches
  let timers: any Timers
  let jobs: LoopJobs
  private let files: SocketFiles
  private let driver: EngineDriver
  let workers: WorkerRegistry
  private let phase: DaemonPhase
  private let declared: DeclaredWorkers
  private let log: DaemonLog
  private var sets: [WorkerID: Sockets] = [:]
  /// Workers whose sockets with files are being opened, and the closures that wait for that.
  private var openings: [WorkerID: [() -> Void]] = [:]
  /// Workers whose sockets aren't open yet at the daemon's start.
  var unopened: Set<WorkerID> = []
  /// Called when the sockets have been opened at the daemon's start.
  var whenOpened: (() -> Void)?

  /// The sockets of one worker.
  private final class Sockets {
    var all: [Listener] = []
    var watched: [(listener: Listener, token: EventLoop.Token)] = []
    /// The times at which a connection started the worker.
    var starts: [Instant] = []
  }

  init(
    watches: any DescriptorWatches, timers: any Timers, jobs: LoopJobs, files: SocketFiles,
    driver: EngineDriver, workers: WorkerRegistry, phase: DaemonPhase,
    declared: DeclaredWorkers, log: DaemonLog
  ) {
    self.watches = watches
    self.timers = timers
    self.jobs = jobs
    self.files = files
    self.driver = driver
    self.workers = workers
    self.phase = phase
    self.declared = declared
    self.log = log
  }

  private func set(of runtime: WorkerUnit) -> Sockets {
    if let set = sets[runtime.id] { return set }
    let new = Sockets()
    sets[runtime.id] = new
    return new
  }

  private func isCurrent(_ runtime: WorkerUnit) -> Bool { workers[runtime.id] === runtime }

  private func warn(_ runtime: WorkerUnit, _ text: String) {
    log(.warning, "\(runtime.id): \(text)")
  }

  // MARK: opening

  /// Opens the sockets of a worker whose configuration has changed. The name service may take a
  /// long time.
  func relisten(_ runtime: WorkerUnit) {
    let wanted = WantedAccount(runtime.configuration)
    relisten(runtime) { then in
      if wanted.isOurs { return then(.success(nil)) }
      let limit = WorkerStart.patience
      jobs.run(about: "user of \(runtime.id)", within: limit) {
        Result { () throws(TermsError) in try wanted.lookUp() }
      } then: { [weak self] outcome in
        switch outcome {
        case .done(let result): then(result)
        case .overdue: self?.warn(runtime, wanted.isSilent(limit))
        case .busy: self?.warn(runtime, wanted.isStillSilent)
        }
      }
    }
  }

  /// Opens missing sockets, closes those that are no longer in the configuration, and waits for
  /// connections if these start the worker. What fails is tried again when the worker is launched,
  /// and then the launch fails.
  func relisten(
    _ runtime: WorkerUnit,
    as look: (@escaping (Result<Account?, TermsError>) -> Void) -> Void,
    then: @escaping () -> Void = {}
  ) {
    let configuration = runtime.configuration
    let isOpen = sets[runtime.id]?.all.isEmpty == false
    guard isOpen || !configuration.listen.isEmpty else { return then() }
    // If the worker was removed, changed again or started meanwhile, that opens its sockets.
    let isWanted = { [unowned self] in
      isCurrent(runtime) && runtime.configuration == configuration
        && !workers.launching.contains(runtime.id)
    }
    look { [weak self] account in
      guard let self, isWanted() else { return then() }
      do {
        let account = try account.get()
        openFiles(of: runtime, as: account) { [weak self] refusal in
          defer { then() }
          guard let self, isWanted() else { return }
          if let refusal { warn(runtime, refusal) }
          finish(relistening: runtime, as: account)
        }
      } catch {
        warn(runtime, "\(error)")
        offer(runtime)
        then()
      }
    }
  }

  private func finish(relistening runtime: WorkerUnit, as account: Account?) {
    do {
      _ = try listeners(for: runtime, as: account)
    } catch { warn(runtime, "\(error)") }
    offer(runtime)
  }

  /// Opens the missing Unix sockets, whose files may be in any file system. A further call for the
  /// same worker waits until this one has an outcome.
  ///
  /// - Parameter then: called with the reason if some socket couldn't be opened; perhaps before
  ///   this returns.
  func openFiles(
    of runtime: WorkerUnit, as account: Account?, then: @escaping (String?) -> Void
  ) {
    if openings[runtime.id] != nil {
      openings[runtime.id]?.append { [weak self] in
        self?.openFiles(of: runtime, as: account, then: then)
      }
      return
    }
    openings[runtime.id] = []
    let configuration = runtime.configuration
    closeUnwanted(of: runtime)
    let limit = WorkerStart.patience
    files.open(
      missing(of: runtime), of: runtime.id.name, for: account,
      isForGroup: configuration.group != nil, within: limit
    ) { [weak self] outcome in
      guard let self else { return }
      let waiting = openings.removeValue(forKey: runtime.id) ?? []
      defer { for proceed in waiting { proceed() } }
      guard case .done(let results) = outcome else {
        return then(
          "can't create its sockets within \(limit.spoken): check their file system")
      }
      var refusal: String?
      for result in results {
        switch result {
        case .success(let listener): keep(listener, of: runtime)
        case .failure(let error): refusal = refusal ?? "\(named(error, runtime))"
        }
      }
      then(refusal)
    }
  }

  /// Adds an open socket. If the configuration doesn't contain it any more, it is closed at the
  /// next change.
  func keep(_ listener: Listener, of runtime: WorkerUnit) {
    guard isCurrent(runtime) else { return files.remove(listener) }
    set(of: runtime).all.append(listener)
  }

  /// Adds to the error the name of this daemon's worker that has the address.
  private func named(_ error: ListenError, _ runtime: WorkerUnit) -> ListenError {
    var error = error
    guard error.code == EADDRINUSE,
      let socket = runtime.configuration.listen.first(where: { $0.address == error.address })
    else { return error }
    error.owner = holder(of: socket, otherThan: runtime)
    return error
  }

  /// Returns the sockets for a launch, in the order of the configuration. It opens missing sockets
  /// that have no file; `openFiles` has opened the others.
  func listeners(for runtime: WorkerUnit, as account: Account?) throws -> [Listener] {
    let configuration = runtime.configuration
    closeUnwanted(of: runtime)
    for socket in missing(of: runtime) where socket.filePath == nil {
      do throws(ListenError) {
        set(of: runtime).all.append(
          try Listener.open(socket, for: account, isForGroup: configuration.group != nil))
      } catch { throw named(error, runtime) }
    }
    return configuration.listen.compactMap { socket in
      sets[runtime.id]?.all.first { $0.socket == socket }
    }
  }

  private func missing(of runtime: WorkerUnit) -> [ListenSocket] {
    runtime.configuration.listen.filter { socket in
      sets[runtime.id]?.all.contains { $0.socket == socket } != true
    }
  }

  private func holder(of socket: ListenSocket, otherThan runtime: WorkerUnit) -> String? {
    sets.first { id, set in
      id != runtime.id && set.all.contains { $0.socket.conflicts(with: socket) }
    }.map { "worker `\($0.key)`" }
  }

  // MARK: closing

  private func closeUnwanted(of runtime: WorkerUnit) {
    guard let set = sets[runtime.id] else { return }
    withdraw(runtime)
    for listener in set.all where !runtime.configuration.listen.contains(listener.socket) {
      files.remove(listener)
    }
    set.all.removeAll { !runtime.configuration.listen.contains($0.socket) }
  }

  /// Closes all sockets of the worker. It has been removed, or the daemon is ending.
  func closeListeners(of runtime: WorkerUnit) {
    withdraw(runtime)
    for listener in sets.removeValue(forKey: runtime.id)?.all ?? [] { files.remove(listener) }
  }

  // MARK: starting a worker for a connection

  /// Watches the worker's sockets if a connection starts it. It starts a worker that was terminated
  /// for lack of memory, ended successfully by itself, or never ran. A worker that the operator
  /// stopped stays stopped, and `restart` decides about failures.
  func offer(_ runtime: WorkerUnit) {
    guard let set = sets[runtime.id], !phase.isClosing, runtime.process == nil,
      startsOnConnection(runtime.id)
    else { return }
    withdraw(runtime)
    for listener in set.all {
      do throws(SystemCallError) {
        let token = try watches.whenReadable(listener.descriptor) { [weak self, weak runtime] in
          if let self, let runtime { connected(to: listener, of: runtime, set) }
        }
        set.watched.append((listener, token))
      } catch { warn(runtime, "connections can't start it: \(error)") }
    }
  }

  private func startsOnConnection(_ id: WorkerID) -> Bool {
    guard let snapshot = driver.state.snapshot(of: id, at: timers.now),
      snapshot.state == .terminated
    else { return false }
    return switch snapshot.cause {
    case .added, .pressure, .requested(.terminate), .exited(.exited(0)): true
    default: false
    }
  }

  /// Ends the watches, because the worker runs and accepts connections itself. Closing the daemon's
  /// descriptors wouldn't end a watch while the worker has the sockets open, too.
  private func withdraw(_ runtime: WorkerUnit) {
    guard let set = sets[runtime.id] else { return }
    for (listener, token) in set.watched { watches.unwatch(listener.descriptor, token) }
    set.watched = []
  }

  private func connected(to listener: Listener, of runtime: WorkerUnit, _ set: Sockets) {
    withdraw(runtime)
    let (id, now) = (runtime.id, timers.now)
    set.starts.removeAll { now - $0 > Self.startsWithin }
    guard set.starts.count < Self.maxStarts else {
      return log(
        .error,
        "\(id): ended \(set.starts.count) times without accepting its connection; "
          + "connections don't start it any more: use `dormouse start \(id)`")
    }
    set.starts.append(now)
    log(.info, "\(id): starting: a connection to \(listener.socket.address.text)")
    declared.startAutomatically(id, verb: .start, occasion: .connection)
    // If the start was refused or delayed, a connection that still waits is detected again.
    timers.after(Self.pause) { [weak self] in
      if let self, isCurrent(runtime) { offer(runtime) }
    }
  }
}
