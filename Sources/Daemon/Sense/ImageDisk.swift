import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

/// The state of the images' file system.
struct ImageDisk: Sendable {
  /// The directory of the images; nil if it can't be examined.
  var directory: ImageDirectory?
  /// The size of the file system; zero if it can't be read.
  var total = ByteCount.zero
  var free = ByteCount.zero
  /// The bytes of images and of their bases, by worker.
  var images: [String: Int64] = [:]
  var bases: [String: Int64] = [:]
  /// The bytes of all wrappers' images together, for a wrapper; nil for the daemon.
  var wrapped: Int64?

  /// The bytes of all images and their bases, and the share that belongs to workers that aren't
  /// hibernated.
  var bytes: (held: Int64, idle: Int64) {
    if let wrapped { return (wrapped, 0) }
    return bases.reduce((images.values.reduce(0, +), 0)) { sum, base in
      (sum.0 + base.value, sum.1 + (images[base.key] == nil ? base.value : 0))
    }
  }

  /// A worker's image, if it has one, and its base.
  typealias Files = (worker: String, image: String?, base: String)

  /// Reads the state. It waits for the file system, so it mustn't run on the event loop's thread.
  static func read(_ directory: String, _ files: [Files], wrapped: Int64?) -> ImageDisk {
    var result = ImageDisk(wrapped: wrapped)
    result.directory = ImageDirectory(of: directory + "/")
    for each in files {
      if let image = each.image { result.images[each.worker] = length(image) ?? 0 }
      if let base = length(each.base) { result.bases[each.worker] = base }
    }
    var usage = statvfs()
    guard statvfs(directory, &usage) == 0 else { return result }
    result.total = size(of: UInt64(usage.f_blocks), each: UInt64(usage.f_frsize))
    result.free = size(of: UInt64(usage.f_bavail), each: UInt64(usage.f_frsize))
    return result
  }

  /// File systems without a size of their own report up to 2⁶⁴ blocks. They count as 1 EiB, to
  /// which other sizes can be added.
  static func size(of blocks: UInt64, each length: UInt64) -> ByteCount {
    let (product, overflow) = blocks.multipliedReportingOverflow(by: length)
    return ByteCount(overflow ? 1 << 60 : Int64(min(product, 1 << 60)))
  }

  private static func length(_ path: String) -> Int64? {
    fileStatus(of: path).map { Int64($0.st_size) }
  }
}

extension ImageDisk {
  /// A probe that reads the disk on another thread, with the workers as they are when a reading
  /// begins.
  ///
  /// - Parameters:
  ///   - directory: the directory of the images.
  ///   - sharedImages: returns the bytes of all images that share the budget; nil if those are the
  ///     images of `workers`.
  ///   - image: the path of a worker's image, by the worker's name.
  ///   - didBegin: called when a reading begins.
  static func probe(
    _ jobs: LoopJobs, directory: String, workers: WorkerRegistry,
    sharedImages: (@Sendable () -> Int64)?, image: @escaping (String) -> String,
    didBegin: @escaping () -> Void
  ) -> CoalescedProbe<ImageDisk> {
    CoalescedProbe(jobs, about: "disk of images", within: ImageDiskMonitor.timeout) {
      () -> @Sendable () -> ImageDisk in
      didBegin()
      var files: [Files] = []
      for worker in workers.values where sharedImages == nil {
        let path = image(worker.id.name)
        let trimmed = worker.bytesInTrimImage > 0 ? path : nil
        files.append(
          (worker.id.name, worker.image?.path ?? trimmed, Hibernator.basePath(of: path)))
      }
      return { [files] in ImageDisk.read(directory, files, wrapped: sharedImages?()) }
    }
  }
}

extension ImageDiskMonitor {
  /// The monitor of the daemon's images.
  convenience init(
    services: Services, driver: EngineDriver, state: StateDirectory, workers: WorkerRegistry,
    sharedImages: (@Sendable () -> Int64)?
  ) {
    let (disk, log) = (services.disk, services.log)
    weak var monitor: ImageDiskMonitor?
    let probe = ImageDisk.probe(
      services.jobs, directory: state.images, workers: workers, sharedImages: sharedImages,
      image: state.image(of:)
    ) { monitor?.didBeginReading() }
    self.init(
      directory: state.images, ledger: WriteLedger(path: state.writes),
      Needs(
        read: { probe.ask(then: $0) }, send: { driver.send($0) },
        removeOutdated: { [hibernation = services.hibernation] in
          hibernation.dropIdleBases(outdated: true)
        },
        save: { ledger in
          disk.write("can't record how much is written to images", log) {
            try ledger.save()
          }
        }, time: { Int64(time(nil)) }, log: log.callAsFunction))
    monitor = self
  }
}
