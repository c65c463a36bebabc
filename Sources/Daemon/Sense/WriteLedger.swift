import Glibc
import Linux

/// What hibernations have cost the disk in the last 24 hours, by the hour. It is kept in a file, so
/// that a daemon that is restarted (in a loop, say) doesn't begin to count at zero:
///
///     dormouse writes 1
///     HOUR BYTES MILLISECONDS IMAGES      a line for each hour since 1970 (UTC) that has any
///     crc32c 0123abcd                     the checksum of all before it
struct WriteLedger: Sendable {
  struct Costs: Hashable, Sendable {
    var bytes: Int64 = 0
    /// The time from the engine's directive until the worker sleeps, of the hibernations that
    /// succeeded.
    var milliseconds: Int64 = 0
    var images: Int64 = 0
  }

  private static let title = "dormouse writes 1"
  private static let span: Int64 = 24

  private let path: String
  private var hours: [Int64: Costs] = [:]
  /// Why the earlier counts can't be read; nil if they can.
  private(set) var damage: String?

  /// Reads the counts, if there are any. A damaged file counts as missing.
  init(path: String) {
    self.path = path
    let bytes: [UInt8]
    do throws(SystemCallError) { bytes = try readFile(path) } catch {
      if error.code != ENOENT { damage = error.description }
      return
    }
    if let hours = Self.decode(bytes) { self.hours = hours } else { damage = "\(path) is damaged" }
  }

  /// The costs of the last 24 hours, the current hour included.
  ///
  /// - Parameter time: seconds since 1970.
  func total(at time: Int64) -> Costs {
    let now = time / 3600
    return hours.reduce(into: Costs()) { sum, entry in
      // Hours in the future count too: a clock that was set back doesn't undo writes.
      guard Self.counts(entry.key, at: now) else { return }
      sum.bytes += entry.value.bytes
      sum.milliseconds += entry.value.milliseconds
      sum.images += entry.value.images
    }
  }

  /// Counts one image. Call `save` to keep it.
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

  /// Writes the counts. Call it on a thread that may wait for the disk.
  func save() throws(SystemCallError) {
    let lines = hours.sorted { $0.key < $1.key }.map { hour, costs in
      "\(hour) \(costs.bytes) \(costs.milliseconds) \(costs.images)"
    }
    let text = SealedFacts.text(lines, title: Self.title)
    try StateFile.replace(path, with: Array(text.utf8), durability: .none)
  }

  private static func decode(_ bytes: [UInt8]) -> [Int64: Costs]? {
    guard let lines = SealedFacts.lines(of: bytes, title: title) else { return nil }
    var hours: [Int64: Costs] = [:]
    for line in lines {
      let numbers = String(decoding: line, as: UTF8.self).split(separator: " ")
        .compactMap { Int64($0) }
      // The bytes of a day on any disk are far below these limits, so sums can't overflow.
      guard numbers.count == 4, numbers.allSatisfy({ (0...(1 << 50)).contains($0) }) else {
        return nil
      }
      hours[numbers[0]] = Costs(bytes: numbers[1], milliseconds: numbers[2], images: numbers[3])
    }
    return hours
  }
}
