import Hibernation
import Linux
import Supervision

/// The operations of `Rescue` on processes and images. Tests provide their own.
protocol RescueMeans {
  /// Descriptors of the workers' memory that the ended daemon's keeper passes on; nil: there is no keeper.
  mutating func collect() -> [ProcessIdentity: Descriptor]?
  /// The keeper ends.
  func areTaken()
  /// Of the process that it describes.
  func life(of record: WorkerRecord) -> ProcessLife
  /// - Parameter memories: by pid.
  func target(
    of record: WorkerRecord, memories: [Int32: Descriptor]
  ) throws -> HibernationTarget
  /// Lets it run with all of its memory, and returns how many bytes were restored.
  ///
  /// - Parameter recorded: as for `Hibernator.resume`.
  func recover(
    _ target: HibernationTarget, from image: String, expecting: ImageExpectation,
    recorded: () -> String?
  ) throws(HibernationError) -> UInt64
  /// SIGKILL to all of it.
  func end(_ record: WorkerRecord, _ target: HibernationTarget) throws
}

/// The processes of this machine.
struct RescueOfMachine: RescueMeans {
  /// The keeper's socket, in the state directory.
  let keeper: String
  let bootID: String
  private let hibernator = Hibernator()
  private var handedOver: HandedOver?

  init(keeper: String) throws(SystemCallError) {
    self.keeper = keeper
    bootID = try BootMark.current()
  }

  mutating func collect() -> [ProcessIdentity: Descriptor]? {
    handedOver = HandedOver.collect(from: keeper, within: .seconds(2))
    return handedOver?.memories
  }

  func areTaken() { handedOver?.areTaken() }

  func life(of record: WorkerRecord) -> ProcessLife { record.life(bootID: bootID) }

  func target(
    of record: WorkerRecord, memories: [Int32: Descriptor]
  ) throws -> HibernationTarget {
    HibernationTarget(
      name: record.name, root: record.process, session: record.session,
      cgroup: try record.cgroupPath.map {
        try WorkerCgroup(path: $0, isExternal: record.external != nil)
      }, memories: memories, waits: record.waits.map { TimedWaits($0) } ?? TimedWaits())
  }

  func recover(
    _ target: HibernationTarget, from image: String, expecting: ImageExpectation,
    recorded: () -> String?
  ) throws(HibernationError) -> UInt64 {
    try hibernator.recover(target, from: image, expecting: expecting, recorded: recorded).restored
  }

  func end(_ record: WorkerRecord, _ target: HibernationTarget) throws {
    guard let cgroup = target.cgroup else {
      return try ProcessTree.killAll(root: record.process, session: record.session)
    }
    try cgroup.kill()
    // A group that isn't empty stays for the next daemon.
    if record.external == nil { try? cgroup.remove(until: Deadline(in: .seconds(2))) }
  }
}
