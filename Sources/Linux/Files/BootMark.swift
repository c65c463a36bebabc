import CLinux
import Glibc

/// The boot of the machine in which a file was written, stored as an extended attribute of the
/// file.
///
/// The processes that a file of an earlier boot describes have ended. The file's times don't show
/// its boot: the clock may have been wrong then, or was set since.
public enum BootMark {
  private static let name = "user.dormouse.boot"
  private static let longest = 64

  /// The kernel's ID of this boot.
  public static func current() throws(SystemCallError) -> String {
    String(try readText("/proc/sys/kernel/random/boot_id").prefix { $0 != "\n" })
  }

  /// Marks a file that is being written. A failure is ignored.
  ///
  /// - Parameter boot: the ID of the boot; nil: this one.
  public static func set(on file: Descriptor, boot: String? = nil) {
    // A file system without attributes, or a kernel without boot IDs, has no mark. Then
    // `isOfEarlierBoot` compares times.
    guard let boot = boot ?? (try? current()) else { return }
    let bytes = Array(boot.utf8)
    _ = clinux_write_attribute(file.raw, name, bytes, bytes.count)
  }

  /// Whether a file was written in an earlier boot. A file without a mark counts as older if, by
  /// the machine's clock, it was last changed before this boot.
  public static func isOfEarlierBoot(_ path: String) -> Bool {
    guard let status = linkStatus(of: path), status.isRegularFile else { return false }
    // `current` fails on a kernel without boot IDs.
    if let mark = read(path), let current = try? current() { return mark != current }
    return Int64(status.st_mtim.tv_sec) < (Clocks.realtime - Clocks.boottime) / 1_000_000_000
  }

  /// Reads a file's mark; nil if it has none, or can't be opened.
  private static func read(_ path: String) -> String? {
    guard let file = try? Descriptor.open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW) else {
      return nil
    }
    var bytes = [UInt8](repeating: 0, count: longest)
    let count = clinux_read_attribute(file.raw, name, &bytes, bytes.count)
    return count > 0 ? String(validating: bytes.prefix(Int(count)), as: UTF8.self) : nil
  }
}
