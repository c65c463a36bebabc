import Hibernation
import Lifecycle
import Policy
import Supervision

@testable import Daemon

/// The real `WorkerSheds` over simulated measurements and scans, whose outcomes are delayed, late,
/// lost or reported twice. A signal may have an effect or not.
final class ShellSheds: FootprintSource {
  private unowned let world: ShellWorld
  private lazy var meter = FootprintMeter(
    clock: world.clock, driver: world.driver, workers: world.workers, source: self,
    log: { _, _ in })
  private lazy var scanner = ProcessScanner(
    world.clock, launchedAt: { _ in .zero }
  ) { [unowned world] then in
    world.after(.milliseconds(50), rarely: .seconds(10)) { then(nil) }
  }
  private(set) lazy var sheds = WorkerSheds(
    loop: world.clock, processes: world.processes.fake, driver: world.driver,
    workers: world.workers, meter: meter, scanner: scanner, liveness: world.liveness.supervisor,
    log: world.processes.log)

  init(_ world: ShellWorld) { self.world = world }

  func measure(
    _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
    then: @escaping (Measurement?) -> Void
  ) {
    world.count("measured")
    let footprint = ByteCount.megabytes(world.pick([4, 8]))
    let measurement = Measurement(footprint: footprint, at: world.clock.now, took: .milliseconds(1))
    world.after(.milliseconds(50), rarely: .seconds(10)) { [unowned world] in
      world.report(late: .seconds(100), twice: .seconds(60)) { then(measurement) }
    }
  }
}
