import CLinux
import Glibc

/// The boot of the machine in which a file was written, as an extended attribute of the file.
///
/// The processes that a file of an earlier boot is about have ended. The file's times don't show its boot: the clock may
/// have been wrong then, or set since.
public enum BootMark {
  private static let name = "user.dormouse.boot"
  private static let longest = 64

  /// What the kernel calls this boot.
  public static func current() throws(SystemCallError) -> String {
    String(try readText("/proc/sys/kernel/random/boot_id").prefix { $0 != "\n" })
  }

  /// Marks a file that is being written.
  ///
  /// - Parameter boot: nil: this one.
  public static func set(on file: Descriptor, boot: String? = nil) {
    // Without the mark, on a file system without attributes or a kernel without boot IDs, the clock decides.
    guard let boot = boot ?? (try? current()) else { return }
    let bytes = Array(boot.utf8)
    _ = clinux_write_attribute(file.raw, name, bytes, bytes.count)
  }

  /// Whether a file is of an earlier boot. A file without a mark is if it was last changed before this boot by the machine's
  /// clock.
  public static func isOfEarlierBoot(_ path: String) -> Bool {
    guard let status = linkStatus(of: path), status.isRegularFile else { return false }
    // A kernel without boot IDs.
    if let mark = read(path), let current = try? current() { return mark != current }
    return Int64(status.st_mtim.tv_sec) < (Clocks.realtime - Clocks.boottime) / 1_000_000_000
  }

  /// nil: it has none, or can't be opened.
  private static func read(_ path: String) -> String? {
    guard let file = try? Descriptor.open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW) else {
      return nil
    }
    var bytes = [UInt8](repeating: 0, count: longest)
    let count = clinux_read_attribute(file.raw, name, &bytes, bytes.count)
    return count > 0 ? String(validating: bytes.prefix(Int(count)), as: UTF8.self) : nil
  }
}
