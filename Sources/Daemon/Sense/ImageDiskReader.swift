import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

/// Reads the state of the images' file system and the sizes of the existing workers' images, on
/// another thread. It belongs to the event loop's thread.
final class ImageDiskReader {
  private let directory: String
  private let workers: WorkerRegistry
  /// Returns the bytes of all images that share the budget; nil if those are the images of
  /// `workers`.
  private let sharedImages: (@Sendable () -> Int64)?
  private let jobs: LoopJobs
  /// The path of a worker's image, by the worker's name.
  private let image: (String) -> String
  private lazy var shared = makeShared()
  private var didBegin: () -> Void = {}

  /// - Parameter directory: the directory of the images.
  init(
    _ jobs: LoopJobs, directory: String, _ workers: WorkerRegistry,
    sharedImages: (@Sendable () -> Int64)?, image: @escaping (String) -> String
  ) {
    self.jobs = jobs
    self.image = image
    self.directory = directory
    self.workers = workers
    self.sharedImages = sharedImages
  }

  /// Sets the function to call when a reading didBegin. The reading uses the workers as they are
  /// then.
  func onBegin(_ action: @escaping () -> Void) { didBegin = action }

  /// Reads and calls back once on the event loop, later, with nil if the file system didn't answer
  /// in time.
  func ask(then: @escaping (ImageDisk?) -> Void) { shared.ask(then: then) }

  private func makeShared() -> CoalescedProbe<ImageDisk> {
    CoalescedProbe(jobs, about: "disk of images", within: ImageDiskMonitor.timeout) {
      [unowned self] in job()
    }
  }

  private func job() -> @Sendable () -> ImageDisk {
    didBegin()
    let directory = directory
    if let sharedImages {
      return {
        var result = ImageDisk()
        result.askFileSystem(directory)
        result.wrapped = sharedImages()
        return result
      }
    }
    let images = workers.values.map { worker in
      let name = worker.id.name
      let trimImage = worker.bytesInTrimImage > 0 ? image(name) : nil
      return (
        name: name, path: worker.image?.path ?? trimImage,
        base: Hibernator.basePath(of: image(name))
      )
    }
    return { ImageDisk.read(directory, images) }
  }
}

extension ImageDiskMonitor {
  /// The monitor of the daemon's images.
  convenience init(
    services: Services, driver: EngineDriver, state: StateDirectory, reader: ImageDiskReader
  ) {
    let (disk, log) = (services.disk, services.log)
    self.init(
      directory: state.images, ledger: WriteLedger(path: state.writes),
      Needs(
        read: { reader.ask(then: $0) }, send: { driver.send($0) },
        removeOutdated: { [hibernation = services.hibernation] in
          hibernation.dropIdleBases(outdated: true)
        },
        save: { ledger in
          disk.write("can't record how much is written to images", log) {
            try ledger.save()
          }
        }, time: { Int64(time(nil)) }, log: log.callAsFunction))
    reader.onBegin { [unowned self] in didBeginReading() }
  }
}

/// The state of the images' file system.
struct ImageDisk: Sendable {
  /// The size of the file system; zero if it can't be read.
  var total = ByteCount.zero
  var free = ByteCount.zero
  /// The bytes of images and of their bases, by worker.
  var images: [String: Int64] = [:]
  var bases: [String: Int64] = [:]
  /// The bytes of all wrappers' images together, for a wrapper; nil for the daemon.
  var wrapped: Int64?

  /// The bytes of the base that stays on disk for a worker's next image.
  func base(of worker: String) -> Int64 { bases[worker] ?? 0 }

  /// The bytes of all images and their bases, and the share that belongs to workers that aren't
  /// hibernated.
  var bytes: (held: Int64, idle: Int64) {
    if let wrapped { return (wrapped, 0) }
    return bases.reduce((images.values.reduce(0, +), 0)) { sum, base in
      (sum.0 + base.value, sum.1 + (images[base.key] == nil ? base.value : 0))
    }
  }

  /// Reads the state. It waits for the file system, so it mustn't run on the event loop's thread.
  ///
  /// - Parameter workers: their names, their images if they are hibernated, and their bases.
  static func read(_ directory: String, _ workers: [(name: String, path: String?, base: String)])
    -> ImageDisk
  {
    var result = ImageDisk()
    result.askFileSystem(directory)
    for worker in workers {
      if let path = worker.path { result.images[worker.name] = length(path) ?? 0 }
      if let base = length(worker.base) { result.bases[worker.name] = base }
    }
    return result
  }

  /// Reads the size of the file system. It mustn't run on the event loop's thread.
  mutating func askFileSystem(_ directory: String) {
    var usage = statvfs()
    guard statvfs(directory, &usage) == 0 else { return }
    // File systems without a size of their own report up to 2⁶⁴ blocks.
    func bytes(_ blocks: UInt) -> ByteCount {
      let (product, overflow) = UInt64(blocks).multipliedReportingOverflow(
        by: UInt64(usage.f_frsize))
      return ByteCount(overflow ? .max : Int64(clamping: product))
    }
    (total, free) = (bytes(usage.f_blocks), bytes(usage.f_bavail))
  }

  private static func length(_ path: String) -> Int64? {
    return fileStatus(of: path).map { Int64($0.st_size) }
  }
}
