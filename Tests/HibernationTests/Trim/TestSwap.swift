import Glibc
import TestSupport
import Testing

@testable import Linux

/// Swap for the tests of trims: a file of this test run, or what is on if this user can't make one.
/// Another program may turn its swap off at any moment.
enum TestSwap {
  /// Whether there is some. The first use makes it. It waits for other test processes that have
  /// made swap: these turn it off at their end.
  static let isAvailable: Bool = {
    guard lock != nil else { return false }
    if geteuid() == 0, make() { return true }
    return SwapArea.all().reduce(0) { $0 + $1.free } > 256 << 20
  }()

  /// Is locked until this process ends.
  private static let lock: Descriptor? = {
    let path = "/var/tmp/dormouse-tests-swap-\(geteuid()).lock"
    guard let file = try? Descriptor.open(path, O_RDWR | O_CREAT, mode: 0o600) else { return nil }
    return kernelResult { flock(file.raw, LOCK_EX) } == 0 ? file : nil
  }()

  private static let path = "/var/tmp/dormouse-tests-swap-\(getpid())"

  private static func make() -> Bool {
    let commands = [
      ["dd", "if=/dev/zero", "of=\(path)", "bs=1M", "count=512", "status=none"],
      ["chmod", "600", path], ["mkswap", "-q", path], ["swapon", path],
    ]
    atexit {
      _ = try? Fixture.run(["swapoff", TestSwap.path])  // It may not be on.
      unlink(TestSwap.path)
    }
    // A command that can't be started means that this machine can't.
    return commands.allSatisfy { (try? Fixture.run($0)) == 0 }
  }
}
