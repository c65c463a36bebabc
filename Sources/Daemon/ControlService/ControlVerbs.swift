import Control
import Lifecycle
import Policy
import PolicyFile

extension Daemon: ControlRequestHandler {
  func handle(
    _ request: ControlRequest, from client: ClientID,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    if request.verb == .events, request.follow == true {
      following?.follow(client, request.id, worker: request.worker)
    }
    if request.verb == .register { return respond(register(request, from: client)) }
    carryOut(request, then: respond)
  }

  func end(by verb: ControlRequest.Verb) {
    if verb == .leave { return leave() }
    log(.notice, "a client asked for the end: stopping all workers")
    end()
  }

  func hasReadEverything(_ client: ClientID) { following?.hasReadEverything(client) }

  func hasLeft(_ client: ClientID) {
    following?.forget(client)
    unfollow(client)
  }

  private func register(_ request: ControlRequest, from client: ClientID) -> ControlResponse {
    let refusal = wrappers.take(request.wrapper, from: client, at: EventLoop.now)
    if refusal == nil { follow(client) }
    return ControlResponse(
      id: request.id, result: refusal == nil ? .done : .badRequest, text: refusal ?? "known")
  }

  /// Lets clients in.
  func openControlSocket() throws(StartError) {
    let server = try ControlServer(path: settings.socket, loop, log)
    following = EventFollowing(chronicle, server)
    try server.connect(self)
    self.server = server
  }

  /// Answered when the journal can be read: clients read the past from its files, so that the daemon
  /// needs to keep none of it in memory.
  func events(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    let place = chronicle.save(at: EventLoop.now) { [mailbox] in
      mailbox.post { daemon in
        // In the order of the requests: one thread writes for all.
        if !daemon.waitingForJournal.isEmpty { daemon.waitingForJournal.removeFirst()() }
      }
    }
    var response = ControlResponse(
      id: request.id, result: .done,
      text: place.directory.map { "the journal is in \($0)" } ?? "there is no journal")
    response.journal = place
    waitingForJournal.append { respond(response) }
  }

  /// Does what a client asks, and answers when it has happened.
  func carryOut(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    if let expires = request.expires, EventLoop.now.nanoseconds > expires {
      return respond(
        ControlResponse(
          id: request.id, result: .refused,
          text: "`\(request.verb.rawValue)` came too late: its sender no longer waits for it"))
    }
    switch request.verb {
    case .register:
      respond(ControlResponse(id: request.id, result: .badRequest, text: "only wrappers register"))
    case .status where isWrapped(request.worker): statusOfWrapped(request, then: respond)
    case .ps, .status: reportWithSnapshot(request, then: respond)
    case .jetsam: jetsam(request, then: respond)
    case .events: events(request, then: respond)
    case .explain where isWrapped(request.worker): relay(request, then: respond)
    case .explain: respond(explain(request))
    case .policy where isWrapped(request.worker): relay(request, then: respond)
    case .policy: respond(policyInForce(request))
    case .run: run(request, then: respond)
    case .shutdown: end()
    case .leave: leave()
    case .adopt: adopt(request, then: respond)
    case .release: release(request, then: respond)
    case .reloadWorker: reloadWorker(request, then: respond)
    case .setPressure: respond(setPressure(request))
    case .reload, .previewReload:
      let answer = { (outcome: ReloadOutcome) in
        respond(
          ControlResponse(
            id: request.id, result: outcome.isDone ? .done : .refused, text: outcome.text))
      }
      let allowEmpty = request.allowEmpty == true
      if request.verb == .reload {
        reload(allowEmpty: allowEmpty, then: answer)
      } else {
        previewReload(allowEmpty: allowEmpty, then: answer)
      }
    case .start, .restart, .stop, .foreground, .background, .suspend, .hibernate, .wake, .terminate,
      .warn,
      .shadow, .enforce:
      guard let verb = Request.Verb(rawValue: request.verb.rawValue), let name = request.worker
      else {
        return respond(
          ControlResponse(
            id: request.id, result: .badRequest, text: "`\(request.verb.rawValue)` needs a worker"))
      }
      if isWrapped(name) { return relay(request, then: respond) }
      if waitsForDisk(request, WorkerID(name), then: respond) { return }
      if isLeaving || isEnding && verb != .stop && verb != .terminate {
        return respond(
          ControlResponse(id: request.id, result: .refused, text: "the daemon is ending"))
      }
      if let refusal = foreignRefusal(verb, WorkerID(name)) {
        return respond(ControlResponse(id: request.id, result: .refused, text: refusal))
      }
      // Somebody waits for it.
      if verb == .wake || verb == .foreground || verb == .stop { hibernation.prioritize(name) }
      personAsks(verb, WorkerID(name))
      let answered = { (answer: Answer) in
        respond(
          ControlResponse(id: request.id, result: .init(answer.code), text: answer.text))
      }
      if verb == .start || verb == .restart {
        dependencyStarter.start(WorkerID(name), verb) { [unowned self] in
          watchFirstMoments(of: WorkerID(name), $0, then: answered)
        }
      } else {
        self.request(verb, WorkerID(name), then: answered)
      }
    }
  }

  /// A person who has made room on the disk needn't wait for the next regular look: before a suspended
  /// worker is hibernated by request, the disk is looked at. What is asked of the worker meanwhile comes
  /// after that, in its order.
  private func waitsForDisk(
    _ request: ControlRequest, _ id: WorkerID, then respond: @escaping (ControlResponse) -> Void
  ) -> Bool {
    if awaitingDisk[id] != nil {
      awaitingDisk[id]?.append { [unowned self] in carryOut(request, then: respond) }
      return true
    }
    guard request.verb == .hibernate, engine.state(of: id) == .suspended, !diskWasAsked else {
      return false
    }
    awaitingDisk[id] = [{ [unowned self] in carryOut(request, then: respond) }]
    takeDiskReading { [unowned self] in
      let waiting = awaitingDisk.removeValue(forKey: id) ?? []
      diskWasAsked = true
      for each in waiting { each() }
      diskWasAsked = false
    }
    return true
  }

  /// `run NAME -- CMD…`: a worker that no configuration declares.
  private func run(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    func refuse(_ result: ControlResponse.Result, _ text: String) {
      respond(ControlResponse(id: request.id, result: result, text: text))
    }
    if isEnding || isLeaving { return refuse(.refused, "the daemon is ending") }
    guard let name = request.worker, let launch = request.launch, !launch.command.isEmpty else {
      return refuse(.badRequest, "`run` needs a name and a command")
    }
    if let problem = WorkerName.problem(with: name) {
      return refuse(.badRequest, "`\(name)` can't be a worker's name: \(problem)")
    }
    let importance = launch.importance ?? 0
    guard (0...100).contains(importance) else {
      return refuse(.badRequest, "importance \(importance) is not between 0 and 100")
    }
    let id = WorkerID(name)
    if wrappers.leads(id) { return refuse(.refused, "\(name) is the name of a wrapped worker") }
    if let known = workers[id] {
      if isAlive(id) {
        return refuse(.refused, "\(name) is running already")
      }
      if known.isDeclared {
        return refuse(
          .refused, "\(name) is in the configuration; start it with `dormouse start \(name)`")
      }
    }
    var configuration = WorkerConfiguration(
      name: name, command: launch.command, directory: launch.directory, importance: importance,
      policy: engine.policy)
    configuration.notify = launch.notify ?? false
    let runtime = WorkerRuntime(
      configuration: configuration, environment: launch.environment, isDeclared: false)
    restarts.add(id, exits: rememberedExits(of: id))
    workers[id] = runtime
    driver.send(.added(id, runtime.profile))
    self.request(.start, id) { [unowned self] answer in
      watchFirstMoments(of: id, answer) {
        respond(ControlResponse(id: request.id, result: .init($0.code), text: $0.text))
      }
    }
  }

  private func jetsam(
    _ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void
  ) {
    let ids = jetsamReports.ids
    let isTerminating = engine.isTerminatingForMemory
    guard let wanted = request.report ?? ids.first else {
      let text =
        isTerminating
        ? "workers are being terminated for memory; what became of it is reported when it is over"
        : "no worker has been terminated for memory"
      return respond(ControlResponse(id: request.id, result: .done, text: text, reports: ids))
    }
    waitingForJetsam.append { record in
      let text =
        record == nil
        ? "there is no low memory report \(wanted)" : "low memory report \(wanted)"
      respond(
        ControlResponse(
          id: request.id, result: record == nil ? .failed : .done, text: text, jetsam: record,
          reports: ids))
    }
    disk.submit { [mailbox, jetsamReports] in
      let record = jetsamReports.store.load(wanted)
      mailbox.post { daemon in
        // In the order of the requests: one thread reads for all.
        if !daemon.waitingForJetsam.isEmpty { daemon.waitingForJetsam.removeFirst()(record) }
      }
    }
  }
}

/// What may name a worker: the same rule as in the configuration, because a name becomes a file's.
enum WorkerName {
  static func problem(with name: String) -> String? {
    let allowed = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    let first = name.utf8.first
    guard allowed, (1...64).contains(name.utf8.count), first != UInt8(ascii: "."),
      first != UInt8(ascii: "-")
    else {
      return "a name has 1–64 letters, digits, `-`, `_` and `.`, and begins with no `.` or `-`"
    }
    return nil
  }
}

extension ControlResponse.Result {
  init(_ code: Answer.Code) {
    self =
      switch code {
      case .done: .done
      case .refused: .refused
      case .failed: .failed
      case .unknownWorker: .unknownWorker
      }
  }
}
