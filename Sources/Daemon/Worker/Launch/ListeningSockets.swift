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
  let declared: DeclaredWorkers
  private var sets: [WorkerID: Sockets] = [:]
  /// Workers whose sockets with files are being opened, and the closures that wait for that.
  private var openings: [WorkerID: [() -> Void]] = [:]

  /// The sockets of one worker.
  private struct Sockets {
    var all: [Listener] = []
    var watched: [(listener: Listener, token: EventLoop.Token)] = []
    /// The times at which a connection started the worker.
    var starts: [Instant] = []
  }

  init(
    watches: any DescriptorWatches, timers: any Timers, jobs: LoopJobs, files: SocketFiles,
    declared: DeclaredWorkers
  ) {
    self.watches = watches
    self.timers = timers
    self.jobs = jobs
    self.files = files
    self.declared = declared
  }

  var workers: WorkerRegistry { declared.workers }

  private func isCurrent(_ worker: WorkerUnit) -> Bool { workers[worker.id] === worker }

  private func warn(_ worker: WorkerUnit, _ text: String) {
    declared.log(.warning, "\(worker.id): \(text)")
  }

  // MARK: opening

  /// Opens missing sockets, closes those that are no longer in the configuration, and waits for
  /// connections if these start the worker. What fails is tried again when the worker is launched,
  /// and then the launch fails.
  ///
  /// - Parameters:
  ///   - mayWait: the daemon starts, so this thread may wait for the name service.
  ///   - then: called when the sockets have an outcome, perhaps before this returns; never if the
  ///     name service has none.
  func relisten(_ worker: WorkerUnit, mayWait: Bool = false, then: @escaping () -> Void = {}) {
    let configuration = worker.configuration
    let isOpen = sets[worker.id]?.all.isEmpty == false
    guard isOpen || !configuration.listen.isEmpty else { return then() }
    let wanted = WantedAccount(configuration)
    let lookUp: @Sendable () -> Result<Account?, Refusal> = {
      Result { () throws(Refusal) in try wanted.lookUp() }
    }
    if mayWait || wanted.isOurs {
      return openSockets(configuration, of: worker, as: lookUp(), then)
    }
    let limit = WorkerStart.timeout
    jobs.run(about: "user of \(worker.id)", within: limit, lookUp) { [weak self] outcome in
      switch outcome {
      case .done(let account): self?.openSockets(configuration, of: worker, as: account, then)
      case .overdue: self?.warn(worker, wanted.timeoutText(limit))
      case .busy: self?.warn(worker, wanted.stillWaitingText)
      }
    }
  }

  private func openSockets(
    _ configuration: WorkerConfiguration, of worker: WorkerUnit,
    as account: Result<Account?, Refusal>, _ then: @escaping () -> Void
  ) {
    // If the worker was removed, changed again or started meanwhile, that opens its sockets.
    let isWanted = { [unowned self] in
      isCurrent(worker) && worker.configuration == configuration
        && !workers.launching.contains(worker.id)
    }
    guard isWanted() else { return then() }
    do throws(Refusal) {
      let account = try account.get()
      openFiles(of: worker, as: account) { [weak self] refusal in
        defer { then() }
        guard let self, isWanted() else { return }
        if let refusal { warn(worker, refusal) }
        do { _ = try listeners(for: worker, as: account) } catch { warn(worker, "\(error)") }
        offer(worker)
      }
    } catch {
      warn(worker, error.text)
      offer(worker)
      then()
    }
  }

  /// Opens the missing Unix sockets, whose files may be in any file system. A further call for the
  /// same worker waits until this one has an outcome.
  ///
  /// - Parameter then: called with the reason if some socket couldn't be opened; perhaps before
  ///   this returns.
  func openFiles(
    of worker: WorkerUnit, as account: Account?, then: @escaping (String?) -> Void
  ) {
    if openings[worker.id] != nil {
      openings[worker.id]?.append { [weak self] in
        self?.openFiles(of: worker, as: account, then: then)
      }
      return
    }
    openings[worker.id] = []
    let configuration = worker.configuration
    closeUnwanted(of: worker)
    let limit = WorkerStart.timeout
    files.open(
      missing(of: worker), of: worker.id.name, for: account,
      isForGroup: configuration.group != nil, within: limit
    ) { [weak self] outcome in
      guard let self else { return }
      let waiting = openings.removeValue(forKey: worker.id) ?? []
      defer { for proceed in waiting { proceed() } }
      guard case .done(let results) = outcome else {
        return then(
          "can't create its sockets within \(limit.text): check their file system")
      }
      var refusal: String?
      for result in results {
        switch result {
        case .success(let listener): keep(listener, of: worker)
        case .failure(let error): refusal = refusal ?? "\(named(error, worker))"
        }
      }
      then(refusal)
    }
  }

  /// Adds an open socket. If the configuration doesn't contain it any more, it is closed at the
  /// next change.
  func keep(_ listener: Listener, of worker: WorkerUnit) {
    guard isCurrent(worker) else { return files.remove(listener) }
    sets[worker.id, default: Sockets()].all.append(listener)
  }

  /// Adds to the error the name of this daemon's worker that has the address.
  private func named(_ error: ListenError, _ worker: WorkerUnit) -> ListenError {
    var error = error
    guard error.code == EADDRINUSE,
      let socket = worker.configuration.listen.first(where: { $0.address == error.address })
    else { return error }
    error.owner = sets.first { id, set in
      id != worker.id && set.all.contains { $0.socket.conflicts(with: socket) }
    }.map { "worker `\($0.key)`" }
    return error
  }

  /// Returns the sockets for a launch, in the order of the configuration. It opens missing sockets
  /// that have no file; `openFiles` has opened the others.
  func listeners(for worker: WorkerUnit, as account: Account?) throws -> [Listener] {
    let configuration = worker.configuration
    closeUnwanted(of: worker)
    for socket in missing(of: worker) where socket.filePath == nil {
      do throws(ListenError) {
        sets[worker.id, default: Sockets()].all.append(
          try Listener.open(socket, for: account, isForGroup: configuration.group != nil))
      } catch { throw named(error, worker) }
    }
    return configuration.listen.compactMap { socket in
      sets[worker.id]?.all.first { $0.socket == socket }
    }
  }

  /// The sockets of the configuration that aren't open.
  func missing(of worker: WorkerUnit) -> [ListenSocket] {
    worker.configuration.listen.filter { socket in
      sets[worker.id]?.all.contains { $0.socket == socket } != true
    }
  }

  // MARK: closing

  private func closeUnwanted(of worker: WorkerUnit) {
    guard let set = sets[worker.id] else { return }
    withdraw(worker)
    for listener in set.all where !worker.configuration.listen.contains(listener.socket) {
      files.remove(listener)
    }
    sets[worker.id]?.all.removeAll { !worker.configuration.listen.contains($0.socket) }
  }

  /// Closes all sockets of the worker. It has been removed, or the daemon is ending.
  func closeListeners(of worker: WorkerUnit) {
    withdraw(worker)
    for listener in sets.removeValue(forKey: worker.id)?.all ?? [] { files.remove(listener) }
  }

  // MARK: starting a worker for a connection

  /// Watches the worker's sockets if a connection starts it. It starts a worker that was terminated
  /// for lack of memory, ended successfully by itself, or never ran. A worker that the operator
  /// stopped stays stopped, and `restart` decides about failures.
  func offer(_ worker: WorkerUnit) {
    guard let set = sets[worker.id], !declared.phase.isClosing, worker.process == nil,
      startsOnConnection(worker.id)
    else { return }
    withdraw(worker)
    for listener in set.all {
      do throws(SystemCallError) {
        let token = try watches.whenReadable(listener.descriptor) { [weak self, weak worker] in
          if let self, let worker { connected(to: listener, of: worker) }
        }
        sets[worker.id]?.watched.append((listener, token))
      } catch { warn(worker, "connections can't start it: \(error)") }
    }
  }

  private func startsOnConnection(_ id: WorkerID) -> Bool {
    guard let snapshot = declared.driver.state.snapshot(of: id, at: timers.now),
      snapshot.state == .terminated
    else { return false }
    return switch snapshot.cause {
    case .added, .pressure, .requested(.terminate), .exited(.exited(0)): true
    default: false
    }
  }

  /// Ends the watches, because the worker runs and accepts connections itself. Closing the daemon's
  /// descriptors wouldn't end a watch while the worker has the sockets open, too.
  private func withdraw(_ worker: WorkerUnit) {
    for (listener, token) in sets[worker.id]?.watched ?? [] {
      watches.unwatch(listener.descriptor, token)
    }
    sets[worker.id]?.watched = []
  }

  private func connected(to listener: Listener, of worker: WorkerUnit) {
    withdraw(worker)
    let (id, now) = (worker.id, timers.now)
    sets[id]?.starts.removeAll { now - $0 > Self.startsWithin }
    let starts = sets[id]?.starts.count ?? 0
    guard starts < Self.maxStarts else {
      return declared.log(
        .error,
        "\(id): ended \(starts) times without accepting its connection; "
          + "connections don't start it any more: use `dormouse start \(id)`")
    }
    sets[id]?.starts.append(now)
    declared.log(.info, "\(id): starting: a connection to \(listener.socket.address.text)")
    declared.startAutomatically(id, verb: .start, occasion: .connection)
    // If the start was refused or delayed, a connection that still waits is detected again.
    timers.after(Self.pause) { [weak self] in
      if let self, isCurrent(worker) { offer(worker) }
    }
  }
}
