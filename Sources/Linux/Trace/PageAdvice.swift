import CLinux
import Glibc

extension Injector {
  /// What the kernel shall do with pages.
  public enum Advice: Sendable {
    /// Free the pages: MADV_DONTNEED.
    case free
    /// Treat the pages as unused, and separate them from a huge page that extends beyond the range:
    /// MADV_COLD.
    case coolAlone
    /// Move the pages to swap: MADV_PAGEOUT.
    case pageOut

    fileprivate var code: UInt64 {
      switch self {
      case .free: UInt64(MADV_DONTNEED)
      case .coolAlone: 20
      case .pageOut: 21
      }
    }
  }

  /// Gives the kernel an advice about pages. It returns the number of bytes for which the kernel
  /// accepted it. If that is less than requested, the kernel stopped at a range for which it
  /// refuses the advice.
  public mutating func advise(
    _ advice: Advice, _ ranges: [PageRange], inOneCall: Bool
  ) throws(TraceError) -> UInt64 {
    guard let scratch else { return 0 }
    guard inOneCall else {
      var done: UInt64 = 0
      for range in ranges {
        let result = try call(
          CLINUX_SYS_madvise, [range.address, range.length, advice.code, 0, 0, 0])
        if result != 0 { break }
        done += range.length
      }
      return done
    }
    let table = ranges.withUnsafeBytes { Array($0) }
    try write(table, at: scratch.address + Self.rangesOffset)
    let pidfdSelf = UInt64(bitPattern: -10000)
    let result = try call(
      CLINUX_SYS_process_madvise,
      [pidfdSelf, scratch.address + Self.rangesOffset, UInt64(ranges.count), advice.code, 0, 0])
    return result < 0 ? 0 : UInt64(result)
  }
}
