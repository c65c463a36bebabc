@testable import Daemon
@testable import Hibernation

// Trims and fills of simulated workers: to swap, or to an image.

extension ShellMemory {
  func trim(_ order: TrimOrder, then: @escaping (TrimOutcome) -> Void) -> OperationFlag {
    operate("trimmed", on: order.image.target.name, in: [.running], { [self] in moveOut($0) }, then)
  }

  func fill(
    _ target: HibernationTarget, then: @escaping (Result<TrimSummary, HibernationError>) -> Void
  ) -> OperationFlag {
    operate("filled", on: target.name, in: [.running], { [self] in move($0, out: 0) }, then)
  }

  private func moveOut(_ run: ShellRun) -> TrimOutcome {
    var result = move(run, out: 2 << 20)
    guard world.chance(50), case .success(var summary) = result else {
      return TrimOutcome(result: result)
    }
    let missing = MissingBytes(2 << 20, isTrimmed: true)
    run.missing = missing
    world.images.insert(run.id)
    (summary.mechanism, summary.missing) = (.userfaultfd, missing)
    result = .success(summary)
    loseSometimes(run, missing)
    return TrimOutcome(result: result, imageLength: 1 << 20)
  }

  private func move(_ run: ShellRun, out: Int64) -> Result<TrimSummary, HibernationError> {
    if run.body == .dead { return .failure(failure(.vanished)) }
    run.emptyTrimImage()
    if world.chance(10) { return .failure(failure(.intact)) }
    return .success(
      TrimSummary(
        mechanism: .processMadvise, residentBefore: 10 << 20, residentAfter: (10 << 20) - out,
        swapped: out))
  }

  /// Lets all memory of a trimmed worker come back, sometimes before the outcome of the trim is
  /// reported.
  private func loseSometimes(_ run: ShellRun, _ missing: MissingBytes) {
    guard world.chance(50) else { return }
    world.after(.milliseconds(100), rarely: .seconds(100)) { [unowned world] in
      guard run.missing === missing, run.isImageNeeded, run.body == .running else { return }
      world.count("trim lost")
      run.emptyTrimImage()
      run.sleep?.didLoseTrim("it forks often")
    }
  }
}

extension ShellRun {
  /// Whether memory of the worker, which runs or is suspended, is only in the image of its trim.
  var isImageNeeded: Bool {
    (body == .running || body == .stopped) && (missing?.bytes ?? 0) > 0
  }

  /// Brings all memory in the image of a trim back.
  func emptyTrimImage() {
    guard isImageNeeded else { return }
    missing?.set(0)
    if !world.images.contains(id) { complain("the image of its trim has been removed") }
    world.images.remove(id)
  }
}
