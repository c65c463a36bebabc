import CLinux
import Glibc
import Hibernation
import Linux

extension Daemon {
  /// A process that goes on with the pages of workers if this one dies. Without it, they wait for
  /// the next daemon.
  func startStandbyPager() {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = max(0, readlink("/proc/self/exe", &buffer, buffer.count))
    let own = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    do {
      hibernation.set(try Standby(command: [own, "pager"]))
    } catch { log(.warning, "no standby pager: \(error)") }
  }
}
