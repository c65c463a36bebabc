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
    // Without an eventfd none is looked after; what is hung up stays until the worker removes it.
    hangUps = try? HangUpWatch(hungUp)
  }

  deinit { hangUps?.end() }

  /// Takes what there is room for. What is stored already, under any name, isn't stored twice.
  ///
  /// Returns how many had no room.
  public func add(
    _ descriptors: [Descriptor], name: String, isPolled: Bool, limit: Int
  ) -> Int {
    var refused = 0
    for descriptor in descriptors where !holds(descriptor) {
      guard entries.count < limit else {
        refused += 1
        continue
      }
      latest += 1
      entries.append(Entry(name: name, descriptor: descriptor, number: latest))
      if isPolled { hangUps?.watch(latest, descriptor) }
    }
    return refused
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
