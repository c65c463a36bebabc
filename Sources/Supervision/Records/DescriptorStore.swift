import CLinux
import Linux

/// The descriptors that one worker has stored with the daemon. They outlast its runs. The store
/// belongs to the event loop's thread, which never polls or closes a stored descriptor: both calls
/// may block on the file behind it.
public final class DescriptorStore {
  public struct Entry: Sendable {
    public let name: String
    public let descriptor: Descriptor
    fileprivate let number: UInt64
  }

  public private(set) var entries: [Entry] = []
  private var latest: UInt64 = 0
  private let hangUps: HangUpWatch?

  /// - Parameter hungUp: is called on another thread, with the number to pass to `didHangUp(_:)`.
  public init(hungUp: @escaping @Sendable (UInt64) -> Void) {
    // Without an eventfd no descriptor is watched. A descriptor that is hung up stays until the
    // worker removes it.
    hangUps = try? HangUpWatch(hungUp)
  }

  deinit { hangUps?.end() }

  /// Stores the descriptors as far as the limit allows. A file that is stored already, under any
  /// name, isn't stored twice.
  ///
  /// - Returns: the numbers of those that weren't stored.
  public func add(
    _ descriptors: [Descriptor], name: String, isPolled: Bool, limit: Int
  ) -> Refused {
    var refused = Refused()
    for descriptor in descriptors {
      guard Self.isSafe(descriptor) else {
        refused.unsafe += 1
        continue
      }
      if entries.contains(where: { clinux_same_file($0.descriptor.raw, descriptor.raw) == 1 }) {
        continue
      }
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

  /// The numbers of descriptors that weren't stored, by reason.
  public struct Refused: Hashable, Sendable {
    public var noRoom = 0
    public var unsafe = 0
  }

  /// Whether closing the descriptor can't block. When the daemon starts a program, the child closes
  /// its copies of all the daemon's descriptors. The close of a file may wait for its file system
  /// (FUSE), so one worker could delay the launches of others. For that reason only sockets, pipes,
  /// files in memory, eventfds and the like are stored. The link is the kernel's own text; a path
  /// begins with `/`.
  static func isSafe(_ descriptor: Descriptor) -> Bool {
    let kind = readLink("/proc/self/fd/\(descriptor.raw)") ?? ""
    return ["socket:[", "pipe:[", "anon_inode:"].contains { kind.hasPrefix($0) }
      || clinux_is_memory_file(descriptor.raw) == 1
  }

  /// Returns the number of descriptors that were removed.
  @discardableResult
  public func remove(name: String) -> Int { remove { $0.name == name } }

  /// Removes a descriptor whose other end has closed. Returns its name if it was still stored.
  public func didHangUp(_ number: UInt64) -> String? {
    let name = entries.first { $0.number == number }?.name
    remove { $0.number == number }
    return name
  }

  /// Removes the newest descriptors beyond the limit. Returns how many were removed.
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

/// A datagram by which a worker changes its file descriptor store (sd_notify(3)).
public enum StoreRequest: Sendable {
  /// `FDSTORE=1`. `isPolled` is false if the datagram contains `FDPOLL=0`.
  case store([Descriptor], name: String, isPolled: Bool)
  /// `FDSTOREREMOVE=1`
  case remove(name: String)

  /// The name of descriptors without `FDNAME=`. systemd uses the same.
  static let usualName = "stored"

  /// Returns nil if the datagram is no such request. The caller drops descriptors that come with
  /// it.
  init?(_ datagram: some Collection<UInt8>, passed: [Descriptor]) {
    var fields: [String: String] = [:]
    for line in datagram.split(separator: UInt8(ascii: "\n")).prefix(NotifyMessage.maxFields) {
      let text = String(decoding: line.prefix(400), as: UTF8.self)
      guard let equals = text.firstIndex(of: "=") else { continue }
      fields[String(text[..<equals])] = String(text[text.index(after: equals)...])
    }
    let name = fields["FDNAME"].flatMap { Self.isName($0) ? $0 : nil }
    if fields["FDSTOREREMOVE"] == "1" {
      guard let name else { return nil }
      self = .remove(name: name)
    } else if fields["FDSTORE"] == "1", !passed.isEmpty {
      self = .store(passed, name: name ?? Self.usualName, isPolled: fields["FDPOLL"] != "0")
    } else {
      return nil
    }
  }

  /// A name has 1–255 visible ASCII characters, and no colon: `LISTEN_FDNAMES` is a list with
  /// colons.
  static func isName(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count)
      && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
  }
}
