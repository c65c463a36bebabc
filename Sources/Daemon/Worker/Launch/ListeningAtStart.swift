import Lifecycle
import Linux
import PolicyFile
import Supervision

extension ListeningSockets {
  /// The time after which the workers are started, although a file system doesn't respond.
  static let startTimeout = Duration.seconds(1)

  /// Opens the sockets of all workers at the daemon's start. The sockets of workers that survived
  /// are copied from their processes. All others are opened before the first worker starts, so that
  /// no client is refused. Those that a killed daemon still has are copied from it.
  ///
  /// - Parameter then: called once, when all sockets have an outcome or after `startTimeout`;
  ///   perhaps before this returns.
  func openListeners(
    of configurations: [WorkerConfiguration], then: @escaping () -> Void = {}
  ) {
    let listening = configurations.filter { !$0.listen.isEmpty }
      .compactMap { workers[WorkerID($0.name)] }
    var unopened = Set(listening.map(\.id))
    var whenOpened: (() -> Void)? = then
    let endOpening = {
      let then = whenOpened
      whenOpened = nil
      then?()
    }
    for worker in listening {
      recoverSockets(worker) { [weak self] in
        self?.relisten(worker, mayWait: true) {
          self?.recoverFromKilledDaemon(worker) {
            unopened.remove(worker.id)
            if unopened.isEmpty { endOpening() }
          }
        }
      }
    }
    if unopened.isEmpty { return endOpening() }
    timers.after(Self.startTimeout, do: endOpening)
  }

  /// Copies the sockets from the worker's processes, if it has any. A file system on which the
  /// sockets' files are may not respond.
  private func recoverSockets(_ worker: WorkerUnit, then: @escaping () -> Void) {
    // The sockets of a worker that has ended, or can't be read, aren't copied: they are opened
    // again.
    guard let tree = try? worker.process?.tree() else { return then() }
    jobs.run(about: "sockets of \(worker.id)", within: WorkerStart.timeout) {
      [wanted = worker.configuration.listen] in
      Listener.recover(wanted, from: tree)
    } then: { [weak self] outcome in
      if case .done(let listeners) = outcome {
        for listener in listeners { self?.keep(listener, of: worker) }
      }
      then()
    }
  }

  /// Copies the sockets that couldn't be opened, if an earlier daemon has them that was killed and
  /// can't end.
  private func recoverFromKilledDaemon(_ worker: WorkerUnit, then: @escaping () -> Void) {
    let wanted = missing(of: worker)
    guard !wanted.isEmpty else { return then() }
    jobs.run(about: "sockets of \(worker.id)", within: WorkerStart.timeout) {
      Listener.recover(wanted, fromThreads: KilledProcesses.remainingThreads())
    } then: { [weak self] outcome in
      if let self, case .done(let listeners) = outcome, !listeners.isEmpty {
        for listener in listeners where missing(of: worker).contains(listener.socket) {
          declared.log(
            .notice,
            "\(worker.id): \(listener.socket.address.text) is taken over from a killed daemon")
          keep(listener, of: worker)
        }
        offer(worker)
      }
      then()
    }
  }
}
