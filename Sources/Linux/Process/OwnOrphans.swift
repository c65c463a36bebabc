import Glibc
import Synchronization

/// The orphans that this process gets as their subreaper, if it has one worker, which has no session of its own
/// (`dormouse wrap` in a terminal). They are the worker's: nothing else would show that.
public struct OwnOrphans: Hashable, Sendable {
  /// The subreaper.
  var parent: Int32
  /// Children of it that aren't the worker's.
  var others: Set<Int32>

  public init(of parent: Int32, except others: Set<Int32>) {
    self.parent = parent
    self.others = others
  }

  private static let shared = Mutex<OwnOrphans?>(nil)

  /// nil: orphans are found by their session.
  static var current: OwnOrphans? { shared.withLock { $0 } }

  /// From now on each child of this process that is no older than a worker's root belongs to the worker.
  ///
  /// - Parameter others: children for which that isn't true.
  public static func belongToTheWorker(except others: Set<Int32>) {
    let own = OwnOrphans(of: getpid(), except: others)
    shared.withLock { $0 = own }
  }

  /// Not for this process's forks that only try what the kernel can: they have its name.
  func contains(_ stat: ProcessStat) -> Bool {
    stat.parent == parent && !others.contains(stat.pid) && !stat.name.hasPrefix("dormouse")
  }
}
