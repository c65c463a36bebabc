import CLinux
import Linux

/// The descriptors that one worker has stored with the daemon, over its runs. Belongs to the event
/// loop's thread, on which none of them is polled or closed: both may wait for what is behind a
/// descriptor.
public final class DescriptorStore {
  public struct Entry: Sendable {
    public let name: String
    public let descriptor: Descriptor
    fileprivate let number: UInt64
  }

  public private(set) var entries: [Entry] = []
  private var latest: UInt64 = 0
  private let hangUps: HangUpWatch?

  /// - Parameter hungUp: is called on another thread, with what to give to `hungUp(_:)`.
  public init(hungUp: @escaping @Sendable (UInt64) -> Void) {
    // Without an eventfd none is watched; a descriptor that is hung up stays until the worker removes it.
    hangUps = try? HangUpWatch(hungUp)
  }

  deinit { hangUps?.end() }

  /// Takes what there is room for. What is stored already, under any name, isn't stored twice.
  ///
  /// Returns what it didn't take.
  public func add(
    _ descriptors: [Descriptor], name: String, isPolled: Bool, limit: Int
  ) -> Refused {
    var refused = Refused()
    for descriptor in descriptors {
      guard Self.isSafe(descriptor) else {
        refused.unsafe += 1
        continue
      }
      if holds(descriptor) { continue }
      guard entries.count < limit else {
        refused.noRoom += 1
        continue
      }
      latest += 1
      entries.append(Entry(name: name, descriptor: descriptor, number: latest))
      if isPolled { hangUps?.watch(latest, descriptor) }
    }
    return refused
  }

  public struct Refused: Hashable, Sendable {
    public var noRoom = 0
    public var unsafe = 0
  }

  /// Whenever this process starts a program, the child closes its copies of all our descriptors, and
  /// the close of a file may wait for its file system (FUSE): one worker could hold up the launches of the
  /// others. So only what has no such file system is kept: sockets, pipes, files in memory, eventfds and the
  /// like. The link is the kernel's own text; a path begins with `/`.
  static func isSafe(_ descriptor: Descriptor) -> Bool {
    let kind = readLink("/proc/self/fd/\(descriptor.raw)") ?? ""
    return ["socket:[", "pipe:[", "anon_inode:"].contains { kind.hasPrefix($0) }
      || clinux_is_memory_file(descriptor.raw) == 1
  }

  private func holds(_ descriptor: Descriptor) -> Bool {
    entries.contains { clinux_same_file($0.descriptor.raw, descriptor.raw) == 1 }
  }

  /// Returns how many were removed.
  @discardableResult
  public func remove(name: String) -> Int { remove { $0.name == name } }

  /// Whatever is behind it has ended. The name, if it was still there.
  public func hungUp(_ number: UInt64) -> String? {
    let name = entries.first { $0.number == number }?.name
    remove { $0.number == number }
    return name
  }

  /// The oldest stay.
  @discardableResult
  public func keep(atMost limit: Int) -> Int {
    let last = entries.dropFirst(limit).map(\.number)
    return remove { last.contains($0.number) }
  }

  @discardableResult
  private func remove(_ isMeant: (Entry) -> Bool) -> Int {
    let numbers = entries.filter(isMeant).map(\.number)
    entries.removeAll(where: isMeant)
    for number in numbers { hangUps?.unwatch(number) }
    return numbers.count
  }
}
