import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

/// The sockets of `listen`, which outlive their worker's launches.
final class ListenerSet {
  fileprivate(set) var all: [Listener] = []
  fileprivate var watches: [(listener: Listener, token: EventLoop.Token)] = []
  /// When a connection last started the worker.
  fileprivate var starts: [Instant] = []

  /// A worker that ends again without taking the connection isn't started for it for ever.
  fileprivate static let maxStarts = 5
  fileprivate static let startsWithin = Duration.seconds(10)
}

// Sockets that the daemon opens: while their worker is down, whoever connects waits, or starts it.

extension Daemon {
  /// At the daemon's start: those of workers that live on are taken back from them, all others are
  /// opened before the first worker starts, so that nobody is turned away.
  func openListeners() {
    for configuration in settings.configuration.workers where !configuration.listen.isEmpty {
      guard let runtime = workers[WorkerID(configuration.name)] else { continue }
      if let process = runtime.process, let tree = try? process.tree() {
        runtime.listening.all = Listener.recover(configuration.listen, from: tree)
      }
      relisten(runtime, isStarting: true) { then in
        then(Result { () throws(TermsError) in try WantedAccount(configuration).lookUp() })
      }
    }
  }

  /// The same of a worker whose configuration is new. The name service may take its time.
  func relisten(_ runtime: WorkerRuntime) {
    let wanted = WantedAccount(runtime.configuration)
    relisten(runtime) { then in
      if wanted.isOurs { return then(.success(nil)) }
      let limit = WorkerStart.patience
      jobs.run(about: "user of \(runtime.id)", within: limit) {
        Result { () throws(TermsError) in try wanted.lookUp() }
      } then: { [unowned self] outcome in
        switch outcome {
        case .done(let result): then(result)
        case .overdue: log(.warning, "\(runtime.id): \(wanted.isSilent(limit))")
        case .busy: log(.warning, "\(runtime.id): \(wanted.isStillSilent)")
        }
      }
    }
  }

  /// Opens what is missing, closes what is no longer wanted, and waits for connections where that starts
  /// the worker. What fails is tried again, and then counts, when the worker is launched.
  private func relisten(
    _ runtime: WorkerRuntime, isStarting: Bool = false,
    as look: (@escaping (Result<Account?, TermsError>) -> Void) -> Void
  ) {
    let configuration = runtime.configuration
    let open = runtime.listening.all.count
    guard open > 0 || !configuration.listen.isEmpty else { return }
    look { [unowned self] account in
      // It was removed, changed again or started meanwhile: that opens its sockets.
      guard workers[runtime.id] === runtime, runtime.configuration == configuration,
        !launcher.isLaunching(runtime.id)
      else { return }
      do {
        let account = try account.get()
        if isStarting { return finish(relistening: runtime, as: account) }
        openFiles(of: runtime, as: account) { [unowned self] refusal in
          guard workers[runtime.id] === runtime, runtime.configuration == configuration,
            !launcher.isLaunching(runtime.id)
          else { return }
          if let refusal { log(.warning, "\(runtime.id): \(refusal)") }
          finish(relistening: runtime, as: account)
        }
      } catch {
        log(.warning, "\(runtime.id): \(error)")
        offer(runtime)
      }
    }
  }

  private func finish(relistening runtime: WorkerRuntime, as account: Account?) {
    do {
      _ = try listeners(for: runtime, as: account)
    } catch { log(.warning, "\(runtime.id): \(error)") }
    offer(runtime)
  }

  /// Opens the Unix sockets that are missing. Their files may be in any file system.
  ///
  /// - Parameter then: with why not all of them could be; perhaps before this returns.
  func openFiles(
    of runtime: WorkerRuntime, as account: Account?, then: @escaping (String?) -> Void
  ) {
    let configuration = runtime.configuration
    withdraw(runtime)
    close(runtime.listening.all.filter { !configuration.listen.contains($0.socket) }, of: runtime)
    let missing = configuration.listen.filter { socket in
      !runtime.listening.all.contains { $0.socket == socket }
    }
    let limit = WorkerStart.patience
    socketFiles.open(
      missing, of: runtime.id.name, for: account, isForGroup: configuration.group != nil,
      within: limit
    ) { [unowned self] outcome in
      guard case .done(let results) = outcome else {
        return then(
          "its sockets couldn't be made within \(limit.spoken): does their file system answer?")
      }
      var refusal: String?
      for result in results {
        switch result {
        case .success(let listener):
          // One that isn't wanted any more goes with the next change.
          runtime.listening.all.append(listener)
        case .failure(let error): refusal = refusal ?? "\(named(error, runtime))"
        }
      }
      then(refusal)
    }
  }

  /// With the worker of ours that has its address.
  private func named(_ error: ListenError, _ runtime: WorkerRuntime) -> ListenError {
    var error = error
    guard error.code == EADDRINUSE,
      let socket = runtime.configuration.listen.first(where: { $0.address == error.address })
    else { return error }
    error.owner = holder(of: socket, besides: runtime)
    return error
  }

  /// In the order of the configuration.
  func listeners(for runtime: WorkerRuntime, as account: Account?) throws -> [Listener] {
    let configuration = runtime.configuration
    withdraw(runtime)
    close(runtime.listening.all.filter { !configuration.listen.contains($0.socket) }, of: runtime)
    for socket in configuration.listen
    where !runtime.listening.all.contains(where: { $0.socket == socket }) {
      do throws(ListenError) {
        runtime.listening.all.append(
          try Listener.open(socket, for: account, isForGroup: configuration.group != nil))
      } catch { throw named(error, runtime) }
    }
    return configuration.listen.compactMap { socket in
      runtime.listening.all.first { $0.socket == socket }
    }
  }

  private func holder(of socket: ListenSocket, besides runtime: WorkerRuntime) -> String? {
    workers.values.first { other in
      other !== runtime && other.listening.all.contains { $0.socket.conflicts(with: socket) }
    }.map { "worker `\($0.id)`" }
  }

  private func close(_ listeners: [Listener], of runtime: WorkerRuntime) {
    for listener in listeners { socketFiles.remove(listener) }
    runtime.listening.all.removeAll { kept in listeners.contains { $0 === kept } }
  }

  /// The worker isn't wanted any more, or nobody is.
  func closeListeners(of runtime: WorkerRuntime) {
    withdraw(runtime)
    close(runtime.listening.all, of: runtime)
  }

  // MARK: starting a worker for a connection

  /// A worker that is down is started by whoever connects, if it went for memory, ended well by itself,
  /// or never ran. What a person stopped stays so, and failures are the business of `restart`.
  func offer(_ runtime: WorkerRuntime) {
    guard !isEnding, !isLeaving, runtime.process == nil, startsOnConnection(runtime.id) else {
      return
    }
    withdraw(runtime)
    for listener in runtime.listening.all {
      do throws(SystemCallError) {
        let token = try loop.watch(listener.descriptor, .readable) {
          [unowned self, weak runtime] _ in
          if let runtime { connected(to: listener, of: runtime) }
        }
        runtime.listening.watches.append((listener, token))
      } catch { log(.warning, "\(runtime.id): no connection will start it: \(error)") }
    }
  }

  private func startsOnConnection(_ id: WorkerID) -> Bool {
    guard let snapshot = engine.snapshot(of: id, at: EventLoop.now), snapshot.state == .terminated
    else { return false }
    return switch snapshot.cause {
    case .added, .pressure, .requested(.terminate), .exited(.exited(0)): true
    default: false
    }
  }

  /// It runs, and accepts connections itself. While it holds the sockets too, closing ours wouldn't end
  /// the watch.
  func withdraw(_ runtime: WorkerRuntime) {
    for (listener, token) in runtime.listening.watches { loop.unwatch(listener.descriptor, token) }
    runtime.listening.watches = []
  }

  private func connected(to listener: Listener, of runtime: WorkerRuntime) {
    withdraw(runtime)
    let (id, now) = (runtime.id, EventLoop.now)
    let set = runtime.listening
    set.starts.removeAll { now - $0 > ListenerSet.startsWithin }
    guard set.starts.count < ListenerSet.maxStarts else {
      return log(
        .error,
        "\(id): ended \(set.starts.count) times without taking its connection, and isn't started for it "
          + "any more: `dormouse start \(id)`")
    }
    set.starts.append(now)
    log(.info, "\(id): a connection to \(listener.socket.address.text) starts it")
    declared.startAutomatically(id)
    // Refused, or held back: who waits is looked at again.
    loop.after(.seconds(5)) { [unowned self] in
      if workers[id] === runtime { offer(runtime) }
    }
  }
}
