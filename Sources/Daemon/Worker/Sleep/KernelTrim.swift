import Glibc
import Hibernation
import Linux
import Policy

// Trims and fills of running workers.
extension KernelMemory {
  /// The greatest time for which a worker stands still until the image of its trim is complete.
  /// That is ten times what it usually takes, and less than the shortest usual time-out of health
  /// checks (1 s in Kubernetes). DORMOUSE_TEST_STANDSTILL is another time, in seconds, for tests on
  /// busy machines.
  private static let maxStandstill =
    getenv("DORMOUSE_TEST_STANDSTILL").flatMap { Double(String(cString: $0)) }
    .map { Duration.seconds($0) } ?? .milliseconds(500)

  func trim(_ order: TrimOrder, then: @escaping (TrimOutcome) -> Void) -> OperationFlag {
    let (operation, done) = callback(then)
    let request = TrimRequest(
      imageRequest(for: order.image, diskObstacle: order.diskObstacle),
      record: state.trimRecord(of: order.image.target.name),
      mechanism: TrimRequest.Mechanism(order.mechanism),
      imageObstacle: order.image.rules.enabled
        ? nil : "hibernate.enabled is false, so only trim.mechanism: userfaultfd writes an image",
      maxStandstill: Self.maxStandstill)
    let (services, removal, name) = (services, order.image.removal, order.image.target.name)
    let path = state.image(of: name)
    let begin = {
      services.mechanics.submit(about: name) { [hibernation = services.hibernation] in
        removal?()
        hibernation.trim(request) { result in
          let image = (try? result.get())?.missing  // A trim that failed has left no image.
          done(
            TrimOutcome(
              result: result,
              imageLength: image == nil ? nil : Hibernator.lengthOnDisk(of: path) ?? 0))
        }
      }
    }
    // If the daemon dies, the standby pager serves the threads that wait for a page of an image.
    if mayUseImage(request) {
      standby.startStandbyPager(then: begin)
    } else {
      begin()
    }
    return operation
  }

  private func mayUseImage(_ request: TrimRequest) -> Bool {
    switch request.mechanism {
    case .swap: false
    case .userfaultfd: services.hibernation.lazyObstacle == nil
    case .auto:
      services.hibernation.lazyObstacle == nil && request.imageObstacle == nil
        && Hibernator.swapObstacle(of: [request.target.root.pid]) != nil
    }
  }

  func fill(
    _ target: HibernationTarget, then: @escaping (Result<TrimSummary, HibernationError>) -> Void
  ) -> OperationFlag {
    let (operation, done) = callback(then)
    services.hibernation.fill(target, then: done)
    return operation
  }
}

extension TrimRequest.Mechanism {
  fileprivate init(_ mechanism: TrimRules.Mechanism) {
    self =
      switch mechanism {
      case .auto: .auto
      case .userfaultfd: .userfaultfd
      // With `off` the engine requests no trim.
      case .swap, .off: .swap
      }
  }
}
