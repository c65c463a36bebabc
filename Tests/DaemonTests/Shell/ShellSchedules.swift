import Lifecycle

@testable import Daemon

/// The real `ScheduleMonitor` over a wall clock that is set, and a disk that is slow or fails, and
/// whose outcomes are lost, late, or reported twice.
final class ShellSchedules: StateFileWriter {
  private static let period: Int64 = 300
  private unowned let world: ShellWorld
  /// The offset of the wall clock, in seconds.
  private var shift: Int64 = 1_795_341_600
  private var wasSet = false
  /// When each worker was last woken, in seconds of the wall clock.
  private var woken: [WorkerID: Int64] = [:]
  private(set) lazy var monitor = ScheduleMonitor(
    path: "/nowhere/schedule", timers: world.clock, files: self, workers: world.workers,
    wallClock: { [unowned self] in wallClock * 1_000_000_000 }, offset: { _ in 0 },
    wake: { [unowned self] in wake($0) },
    warn: { [unowned world] _ in world.count("plan not kept") })

  init(_ world: ShellWorld) { self.world = world }

  private var wallClock: Int64 { world.clock.now.nanoseconds / 1_000_000_000 + shift }

  func follow() { monitor.follow() }

  func setClock(by seconds: Int64) {
    if world.workers.values.allSatisfy(\.configuration.wakeAt.isEmpty) { return }
    shift += seconds
    wasSet = true
  }

  private func wake(_ id: WorkerID) {
    let now = wallClock
    if !wasSet, let last = woken[id], last / Self.period == now / Self.period {
      world.complain("\(id) is woken twice for one instant of its schedule")
    }
    woken[id] = now
    sendWake(id)
  }

  private func sendWake(_ id: WorkerID) {
    if world.returning.whenAdopted(id, { [self] in sendWake(id) }) { return }
    guard let schedules = world.workers[id]?.configuration.wakeAt else { return }
    if world.driver.wake(id, by: schedules) { world.count("woken by schedule") }
  }

  /// What is wrong with the schedule of a worker; nil: the worker is woken at each time.
  func omission(of id: WorkerID) -> String? {
    guard world.workers[id]?.configuration.wakeAt.isEmpty == false else { return nil }
    // A clock that was set is detected within a minute, and the disk responds within 5 s.
    let limit = Self.period + 70
    guard let last = woken[id], wallClock - last <= limit, wallClock >= last else {
      return "isn't woken by its schedule"
    }
    return nil
  }

  /// Whether an outcome of the disk is still to come. Lost outcomes don't count.
  private(set) var isWriting = false

  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void) {
    isWriting = true
    world.after(.milliseconds(20), rarely: .seconds(30)) { [self] in
      let failure = world.chance(5) ? "no room" : nil
      world.report(late: .seconds(20), twice: .seconds(60)) { [self] in
        isWriting = false
        then(failure)
      }
    }
  }
}
