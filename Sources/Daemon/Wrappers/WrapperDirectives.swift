import Control
import Lifecycle
import Linux
import Policy

// The engine's directives for workers of wrappers. Each is sent to the wrapper as a request.

extension RegisteredWrappers {
  /// Carries out a directive.
  ///
  /// - Returns: false if the directive isn't for a wrapper's worker.
  func execute(_ directive: Directive) -> Bool {
    switch directive {
    case .hibernate(let id) where leads(id): hibernate(id)
    case .trim(let id) where leads(id): trim(id)
    case .terminate(let id) where leads(id): terminate(id)
    case .kill(let id) where leads(id): kill(id)
    case .shed(let id, _, _) where leads(id): shed(id)
    case .finishShed(let id) where leads(id): finishShed(id)
    case .inspect(let id) where leads(id): inspect(id)
    default: return false
    }
    return true
  }

  private func hibernate(_ id: WorkerID) {
    let before = driver.state.footprint(of: id)
    let asked = clock.now
    requestReasons[id] = driver.state.snapshot(of: id).map { CodedText($0.cause) }
    host.log(.notice, "\(id): hibernation requested from its wrapper")
    ask(.hibernate, id) { [unowned self] response in
      guard response.result == .done else {
        requestReasons[id] = nil
        return driver.send(.hibernateFailed(id, response.text, permanent: false))
      }
      let took = clock.now - asked
      ask(.status, id) { [unowned self] status in
        hibernated(id, status.workers?.first, footprintBefore: before, took: took)
      }
    }
  }

  /// - Parameter worker: the worker's state now; nil if its wrapper doesn't report it.
  private func hibernated(
    _ id: WorkerID, _ worker: WorkerReport?, footprintBefore before: ByteCount, took: Duration
  ) {
    driver.send(
      .hibernated(
        id,
        HibernationResult(
          footprintBefore: before, footprintAfter: ByteCount(worker?.footprint ?? 0),
          imageSize: ByteCount(worker?.imageSize ?? 0), duration: took)))
    // The worker may have been woken meanwhile, and its wrapper may have reported that before this
    // answer.
    if let state = worker.flatMap({ WorkerState(rawValue: $0.state) }) {
      driver.send(.moved(id, state, worker.flatMap(Self.reason(in:))))
    }
  }

  private func trim(_ id: WorkerID) {
    let asked = clock.now
    ask(.trim, id) { [unowned self] response in
      guard response.result == .done else {
        // A wrapper of an earlier version doesn't know the verb.
        let permanent = response.result == .badRequest
        return driver.send(.trimFailed(id, response.text, permanent: permanent))
      }
      let took = clock.now - asked
      ask(.status, id) { [unowned self] status in
        guard let last = status.workers?.first?.trim?.last else {
          return driver.send(
            .trimFailed(id, "its wrapper doesn't report what it moved", permanent: false))
        }
        driver.send(.trimmed(id, TrimResult(last, duration: took)))
      }
    }
  }

  private func inspect(_ id: WorkerID) {
    ask(.status, id) { [unowned self] response in
      guard let state = (response.workers?.first?.state).flatMap(WorkerState.init(rawValue:)) else {
        return
      }
      switch state {
      case .hibernated: driver.send(.found(id, .hibernated))
      case .suspended: driver.send(.found(id, .suspended))
      case .foreground, .background: driver.send(.found(id, .running))
      default: driver.send(.found(id, .underWay))
      }
    }
  }

  /// Asks for memory. A refusal is an answer too: nothing more comes.
  private func shed(_ id: WorkerID) {
    shedCount += 1
    let number = shedCount
    sheds[id] = Shed(number: number, footprintBefore: driver.state.footprint(of: id))
    ask(.warn, id) { [unowned self] response in
      guard sheds[id]?.number == number else { return }
      if response.result != .done { host.log(.notice, response.text) }
      driver.send(.shedAnswered(id))
    }
  }

  private func finishShed(_ id: WorkerID) {
    let footprint = driver.state.footprint(of: id)
    let shed = sheds.removeValue(forKey: id)
    ask(.status, id) { [unowned self] response in
      // A newer request is measured by itself.
      guard sheds[id] == nil else { return }
      let after = response.workers?.first.map { ByteCount($0.footprint) } ?? footprint
      driver.send(.shedFinished(id, before: shed?.footprintBefore ?? footprint, after: after))
    }
  }

  private func terminate(_ id: WorkerID) {
    host.log(.warning, "\(id): termination requested from its wrapper")
    ask(.terminate, id) { [unowned self] response in
      if response.result != .done { host.log(.error, response.text) }
    }
  }

  /// Sends a request to the worker's wrapper, which may be stopped itself. An answer counts while
  /// the same wrapper has the worker. A later wrapper of that name has nothing to do with it.
  private func ask(
    _ verb: ControlRequest.Verb, _ id: WorkerID, then answer: @escaping (ControlResponse) -> Void
  ) {
    let client = leaders[id]
    relay(ControlRequest(id: 1, verb: verb, worker: id.name), timeout: Self.timeout) {
      [unowned self] response in
      if leaders[id] == client { answer(response) }
    }
  }

  private func kill(_ id: WorkerID) {
    guard let client = leaders[id], let entry = entries[client] else {
      return
    }
    guard let pid = host.process(of: client), pid > 1, pid == entry.report.pid,
      entry.report.mayBeTerminated == true
    else {
      return host.log(
        .error,
        "\(id): its wrapper is not killed: its pid differs from the reported one, or it lacks "
          + "--may-terminate"
      )
    }
    // The connection may have outlived the process, and another process may have its pid. That
    // process started after the wrapper's last report.
    do throws(SystemCallError) {
      guard try host.kill(pid, startedBefore: entry.at) else {
        return host.log(.error, "\(id): its wrapper, pid \(pid), has ended")
      }
      host.log(.warning, "\(id): killed with its wrapper, pid \(pid)")
    } catch { host.log(.error, "\(id): its wrapper can't be killed: \(error)") }
  }
}

extension TrimResult {
  /// - Parameter duration: from the directive to the outcome.
  fileprivate init(_ trim: TrimReport.Last, duration: Duration) {
    self.init(
      residentBefore: ByteCount(max(0, trim.residentBefore)),
      residentAfter: ByteCount(max(0, trim.residentAfter)),
      swapped: ByteCount(max(0, trim.swapped)), inImage: trim.inImage.map { ByteCount(max(0, $0)) },
      duration: duration, stoppedFor: .seconds(max(0, trim.stoppedSeconds)))
  }
}
