import Glibc
import Linux

/// Waits until one of several logs has changed.
public struct LogWatch: ~Copyable {
  private let descriptor: Descriptor?
  private var watched: Set<String> = []

  public enum Outcome: Hashable, Sendable {
    /// A log has probably changed.
    case changed
    /// Nothing was reported for 1 s. inotify doesn't report when another file gets a name, so check
    /// the logs.
    case quiet
    /// One of the other descriptors can be read.
    case other
  }

  public init() {
    let number = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    // The number of inotify instances per user is limited. Without one, the logs are checked five
    // times a second.
    descriptor = number >= 0 ? Descriptor(owning: number) : nil
  }

  /// - Parameters:
  ///   - others: descriptors that end the wait, too.
  ///   - waits: false if more of the logs can be read already. Then only `others` are checked.
  public mutating func wait(
    for paths: [String], or others: [Int32] = [], waits: Bool = true
  ) -> Outcome {
    var isNew = false
    for path in paths where !watched.contains(path) {
      add(path)
      isNew = true
    }
    // A change before the watch began isn't reported, so the caller has to check once more.
    if isNew { return .changed }
    var entries = [pollfd(fd: descriptor?.raw ?? -1, events: Int16(POLLIN), revents: 0)]
    entries += others.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    let limit: Int32 = descriptor == nil ? 200 : 1000
    let count = poll(&entries, nfds_t(entries.count), waits ? limit : 0)
    if count > 0, entries.dropFirst().contains(where: { $0.revents != 0 }) { return .other }
    if !waits { return .changed }
    guard count > 0 else {
      // A file that has another inode now gets a watch of its own. For the others nothing changes.
      for path in paths { add(path) }
      return descriptor == nil ? .changed : .quiet
    }
    drain()
    return .changed
  }

  private mutating func add(_ path: String) {
    watched.insert(path)
    guard let descriptor else { return }
    _ = inotify_add_watch(descriptor.raw, path, UInt32(IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF))
  }

  private func drain() {
    // At most a few events wait, and they all mean the same.
    _ = try? descriptor?.read(upTo: 1 << 16)
  }
}
