/// Swap areas that are themselves in memory (zram). Their free space isn't available memory,
/// because each page that moves there occupies memory again, compressed.
public enum SwapInMemory {
  public static let path = "/proc/swaps"

  /// Returns the free space of these areas in bytes. Lines that can't be parsed count as 0.
  public static func free(parsing bytes: [UInt8]) -> Int64 {
    var free: Int64 = 0
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n").dropFirst() {
      let fields = line.split { $0 == " " || $0 == "\t" }
      guard fields.count >= 4, let name = fields[0].split(separator: "/").last,
        name.hasPrefix("zram"), let size = Int64(fields[2]), let used = Int64(fields[3]),
        size > used, used >= 0
      else { continue }
      // The sizes are in kilobytes.
      free &+= (size - used).multipliedReportingOverflow(by: 1024).partialValue
    }
    return free
  }
}
