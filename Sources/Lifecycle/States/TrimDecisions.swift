import Policy

// A running worker is trimmed by the policy (`trim.after`), by the ladder (the rung `trim`), or by
// request. It has one trim or fill at a time, and isn't suspended meanwhile.

extension Engine {
  mutating func advanceTrim(_ index: Int) {
    let worker = workers[index]
    if let giveUpAt = worker.run.trim?.giveUpAt, now >= giveUpAt { giveUpTrim(index) }
    guard worker.state == .foreground || worker.state == .background, !worker.isTrimming,
      !worker.isShedding
    else { return }
    if worker.run.trim?.fillRequests.isEmpty == false { return begin(.fill, index) }
    if worker.run.trim?.trimRequests.isEmpty == false || worker.run.trim?.isWanted == true {
      return begin(.trim, index)
    }
    guard worker.goal == nil, let due = worker.trimDueAt, now >= due, worker.run.footprint != nil,
      worker.expectedTrimGain >= worker.policy.trim.minTrimGain
    else { return }
    guard !isShadow(index) else {
      let gain = worker.expectedTrimGain
      reportOnce(
        index, step: .trim, text: "been trimmed: at most \(gain) would have left RAM")
      return
    }
    begin(.trim, index)
  }

  private mutating func begin(_ operation: TrimState.Operation, _ index: Int) {
    var trim = workers[index].run.trim ?? TrimHistory()
    trim.begin(operation, at: now)
    workers[index].run.trim = trim
    emit(operation == .trim ? .trim(workers[index].id) : .fill(workers[index].id))
  }

  /// The outcome is lost. The worker's memory is wherever it is, and the worker runs.
  private mutating func giveUpTrim(_ index: Int) {
    let text = "there was no outcome within \(TrimHistory.timeout.text)"
    if workers[index].run.trim?.underWay == .fill {
      recordFillFailed(index, text)
    } else {
      recordTrimFailed(index, text, permanent: false)
    }
  }

  // MARK: requests

  mutating func acceptTrim(_ index: Int, _ request: Request) {
    let worker = workers[index]
    let name = worker.id
    guard worker.state == .foreground || worker.state == .background else {
      let advice =
        request.verb == .trim && worker.state == .suspended
        ? "; `dormouse hibernate \(name)` frees more" : ""
      return refuse(
        request, "\(name) can't be \(request.verb.trimmed) while \(worker.state.text)\(advice)")
    }
    var trim = worker.run.trim ?? TrimHistory()
    if request.verb == .fill {
      trim.fillRequests.append(request.id)
    } else if let obstacle = worker.policy.trimObstacle {
      return refuse(request, "\(name) can't be trimmed: \(obstacle.sentence)")
    } else if let reason = trim.permanentRefusal {
      return refuse(request, "\(name) can't be trimmed: \(reason)")
    } else {
      trim.trimRequests.append(request.id)
    }
    workers[index].run.trim = trim
  }

  private mutating func answer(
    _ requests: WritableKeyPath<TrimHistory, [Request.ID]>, of index: Int, code: Answer.Code,
    text: String
  ) {
    let waiting = workers[index].run.trim?[keyPath: requests] ?? []
    workers[index].run.trim?[keyPath: requests] = []
    for request in waiting { emit(.answer(request, Answer(code, text))) }
  }

  /// Answers all requests of a run that ends.
  mutating func failTrims(_ index: Int, _ text: String) {
    answer(\.trimRequests, of: index, code: .failed, text: text)
    answer(\.fillRequests, of: index, code: .failed, text: text)
  }

  // MARK: outcomes

  /// Ends an operation. Returns false if it isn't under way.
  private mutating func end(_ operation: TrimState.Operation, _ index: Int) -> Bool {
    guard workers[index].run.trim?.underWay == operation else { return false }
    workers[index].run.trim?.end()
    decisions += 1
    return true
  }

  mutating func recordTrimmed(_ index: Int, _ result: TrimResult) {
    guard end(.trim, index) else { return }
    let rules = workers[index].policy.trim
    workers[index].run.trim?.didTrim(result, rules, at: now)
    recordFootprint(index, result.residentAfter + result.swapped)
    let text = "\(workers[index].id) was \(result.sentence)"
    answer(\.trimRequests, of: index, code: .done, text: text)
  }

  mutating func recordTrimFailed(_ index: Int, _ reason: String, permanent: Bool) {
    guard end(.trim, index) else { return }
    workers[index].run.trim?.didFail(reason, permanent: permanent, at: now)
    let text = "\(workers[index].id) can't be trimmed: \(reason)"
    answer(\.trimRequests, of: index, code: .failed, text: text)
  }

  mutating func recordFilled(_ index: Int, swapped: ByteCount) {
    guard end(.fill, index) else { return }
    workers[index].run.trim?.didFill(swapped: swapped, at: now)
    let swap =
      swapped > .zero ? "; \(swapped) are still in swap" : ": all of its memory is in RAM"
    let text = "\(workers[index].id) is filled\(swap)"
    answer(\.fillRequests, of: index, code: .done, text: text)
  }

  mutating func recordFillFailed(_ index: Int, _ reason: String) {
    guard end(.fill, index) else { return }
    let text = "\(workers[index].id) can't be filled: \(reason)"
    answer(\.fillRequests, of: index, code: .failed, text: text)
  }

  /// Records that the memory of the last trim came back as a whole. The next measurement says how
  /// much is still out of RAM.
  mutating func recordTrimLost(_ index: Int, _ reason: String) {
    workers[index].run.trim?.didLose(reason, at: now)
  }

  /// Records how much of the worker is out of RAM. The kernel may have moved some of it to swap by
  /// itself.
  mutating func recordSwapped(_ index: Int, _ bytes: ByteCount) {
    guard workers[index].state.isAlive else { return }
    if workers[index].run.trim == nil {
      if bytes == .zero { return }
      workers[index].run.trim = TrimHistory()
    }
    workers[index].run.trim?.swapped = max(.zero, bytes)
  }

  // MARK: the ladder

  /// Trims the worker of which the most memory is expected to leave RAM. Among equal ones, that
  /// with the lower band. Stalls alone trim nothing: a trimmed worker stalls to get its memory
  /// back.
  mutating func trimLargest(_ level: PressureLevel) -> LadderState.Outcome {
    guard !workers.isEmpty(.trimmable), isSet(level) || isReallyShort(at: level) else {
      return .nothingLeft
    }
    for index in indices(.trimmable, by: \.expectedTrimGain) {
      if isShadow(index) {
        if countShadowTrim(index, level) { return .acted }
        continue
      }
      var trim = workers[index].run.trim ?? TrimHistory()
      trim.isWanted = true
      workers[index].run.trim = trim
      decisions += 1
      ladderState.step = .trimming(workers[index].id, until: now + LadderState.timeout)
      return .acted
    }
    return .nothingLeft
  }
}

extension TrimResult {
  /// The result as a clause whose subject is the worker.
  public var sentence: String {
    "trimmed: \(residentBefore) → \(residentAfter) in RAM, \(outside), \(duration.text)"
  }

  /// Where the memory is that isn't in RAM.
  private var outside: String {
    guard let inImage, inImage > .zero else { return "\(swapped) in swap" }
    let swap = swapped - inImage
    return "\(inImage) in its image" + (swap > .zero ? ", \(swap) in swap" : "")
  }
}

extension Request.Verb {
  fileprivate var trimmed: String { self == .fill ? "filled" : "trimmed" }
}
