/// A swap area: a line of /proc/swaps (swapon(8)).
public struct SwapArea: Hashable, Sendable {
  public static let path = "/proc/swaps"

  public var name: String
  public var kind: String
  /// The size of the area, and the part of it that is in use, in bytes. A number that can't be
  /// parsed counts as 0.
  public var size: Int64
  public var used: Int64

  public init(name: String, kind: String, size: Int64 = 0, used: Int64 = 0) {
    self.name = name
    self.kind = kind
    self.size = size
    self.used = used
  }

  public var free: Int64 { used >= 0 && size > used ? size - used : 0 }

  /// True for an area that is itself in memory (zram). Its free space isn't available memory,
  /// because each page that moves there occupies memory again, compressed.
  public var isInMemory: Bool { name.split(separator: "/").last?.hasPrefix("zram") == true }

  /// Lists the areas that are in use. A kernel without swap has no such file.
  public static func all() -> [SwapArea] { parse((try? readFile(path)) ?? []) }

  public static func parse(_ bytes: [UInt8]) -> [SwapArea] {
    String(decoding: bytes, as: UTF8.self).split(separator: "\n").dropFirst().compactMap { line in
      let fields = line.split { $0 == " " || $0 == "\t" }
      guard fields.count >= 2 else { return nil }
      return SwapArea(
        name: String(fields[0]), kind: String(fields[1]), size: bytesIn(fields, 2),
        used: bytesIn(fields, 3))
    }
  }

  /// Returns the free space of those areas that are in memory, in bytes.
  public static func freeInMemory(parsing bytes: [UInt8]) -> Int64 {
    parse(bytes).filter(\.isInMemory).reduce(0) { $0 &+ $1.free }
  }

  /// The file's numbers are in kilobytes.
  private static func bytesIn(_ fields: [Substring], _ index: Int) -> Int64 {
    guard index < fields.count, let number = Int64(fields[index]) else { return 0 }
    let (bytes, overflows) = number.multipliedReportingOverflow(by: 1024)
    return overflows ? 0 : bytes
  }
}
