import Glibc

/// For a test, or a part of one, that this machine can't run; `.enabled(if:)` is for whole tests.
/// In CI each reason has to match a line of Tests/permitted-skips.txt (scripts/check-skips).
public func notTestedHere(_ reason: String) {
  // One write instead of print, so that another thread's line can't come between.
  let line = Array("Not tested here: \(reason)\n".utf8)
  _ = write(STDOUT_FILENO, line, line.count)
}
