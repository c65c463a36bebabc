import Checksum
import Glibc
import Linux

/// What hibernations have cost the disk in the last 24 hours, by the hour. Kept in a file, so that a daemon
/// that is restarted (in a loop, say) doesn't begin to count at zero.
///
///     dormouse writes 1
///     HOUR BYTES MILLISECONDS IMAGES      an hour since 1970 (UTC) in which there were any, a line
///     crc32c 0123abcd                     of all before it
struct WriteLedger: Sendable {
  struct Costs: Hashable, Sendable {
    var bytes: Int64 = 0
    /// From the order to rest, of those that succeeded.
    var milliseconds: Int64 = 0
    var images: Int64 = 0
  }

  private static let title = "dormouse writes 1"
  private static let span: Int64 = 24
  /// A file that we have written is far smaller.
  private static let greatestLength = 16384

  private let path: String
  private var hours: [Int64: Costs] = [:]
  /// Why what was counted earlier isn't known.
  private(set) var damage: String?

  /// Reads what was counted, where there is anything. A damaged file counts as none.
  init(path: String) {
    self.path = path
    let bytes: [UInt8]
    do throws(SystemCallError) { bytes = try readFile(path) } catch {
      if error.code != ENOENT { damage = error.description }
      return
    }
    if let hours = Self.decode(bytes) { self.hours = hours } else { damage = "\(path) is damaged" }
  }

  /// The last 24 hours, the one that runs included.
  ///
  /// - Parameter time: seconds since 1970.
  func total(at time: Int64) -> Costs {
    let now = time / 3600
    return hours.reduce(into: Costs()) { sum, entry in
      // A clock that was set back doesn't make writes undone.
      guard Self.counts(entry.key, at: now) else { return }
      sum.bytes += entry.value.bytes
      sum.milliseconds += entry.value.milliseconds
      sum.images += entry.value.images
    }
  }

  /// Counts one image. `save` keeps that.
  mutating func add(bytes: Int64, milliseconds: Int64, at time: Int64) {
    let now = time / 3600
    hours = hours.filter { Self.counts($0.key, at: now) }
    hours[now, default: Costs()].bytes += bytes
    hours[now, default: Costs()].milliseconds += milliseconds
    hours[now, default: Costs()].images += 1
  }

  private static func counts(_ hour: Int64, at now: Int64) -> Bool {
    hour > now - span && hour <= now + span
  }

  /// On a thread that may wait for the disk.
  func save() throws(SystemCallError) {
    try StateFile.replace(path, with: Array(encoded.utf8), durability: .none)
  }

  // MARK: the file

  var encoded: String {
    var text = Self.title + "\n"
    for (hour, costs) in hours.sorted(by: { $0.key < $1.key }) {
      text += "\(hour) \(costs.bytes) \(costs.milliseconds) \(costs.images)\n"
    }
    return text + Self.seal(text)
  }

  private static func seal(_ text: String) -> String {
    "crc32c \(CRC32.castagnoli.text(of: text.utf8))\n"
  }

  private static func decode(_ bytes: [UInt8]) -> [Int64: Costs]? {
    guard bytes.count <= greatestLength else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    // The last line ends, too.
    guard lines.count >= 3, lines.removeLast().isEmpty, let last = lines.popLast(),
      lines.first.map(String.init) == title
    else { return nil }
    let covered = lines.joined(separator: "\n") + "\n"
    guard last + "\n" == seal(covered) else { return nil }
    var hours: [Int64: Costs] = [:]
    for line in lines.dropFirst() {
      let numbers = line.split(separator: " ").compactMap { Int64($0) }
      // A day's worth of any disk is far below these limits, so that sums can't overflow.
      guard numbers.count == 4, numbers.allSatisfy({ (0...(1 << 50)).contains($0) }) else {
        return nil
      }
      hours[numbers[0]] = Costs(bytes: numbers[1], milliseconds: numbers[2], images: numbers[3])
    }
    return hours
  }
}
