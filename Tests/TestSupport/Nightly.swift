import Glibc

/// What is tested on each push, and what only `make test-all` tests, each night (docs/testing.md).
/// A test that is left out until then has the trait `.enabled(if: Nightly.runs, "only in make
/// test-all")`. A test that guards data isn't left out: it has fewer rounds or cases until then.
public enum Nightly {
  /// `DORMOUSE_TESTS=all`.
  public static let runs = getenv("DORMOUSE_TESTS").map { String(cString: $0) } == "all"

  /// `few` on each push, `all` each night; or what the variable says, which a search for a rare
  /// failure sets.
  public static func rounds(_ few: Int, of all: Int, variable: String? = nil) -> Int {
    variable.flatMap { getenv($0) }.flatMap { Int(String(cString: $0)) } ?? (runs ? all : few)
  }

  /// All settings each night; on each push one of them. Which one depends on the line, so that a
  /// suite's tests use all of them.
  public static func one<Case>(
    of all: [Case], file: StaticString = #fileID, line: UInt = #line
  ) -> [Case] {
    if runs || all.count < 2 { return all }
    reportLeftOut(all.count - 1, of: all.count, "\(file):\(line)")
    return [all[Int(line % UInt(all.count))]]
  }

  /// The whole product each night; on each push one of each row, another column in each.
  public static func oneOfEach<Case>(
    _ rows: [[Case]], file: StaticString = #fileID, line: UInt = #line
  ) -> [Case] {
    let all = rows.flatMap { $0 }
    if runs { return all }
    let some = rows.filter { !$0.isEmpty }.enumerated().map { $1[$0 % $1.count] }
    reportLeftOut(all.count - some.count, of: all.count, "\(file):\(line)")
    return some
  }

  /// scripts/run-tests counts these lines.
  private static func reportLeftOut(_ count: Int, of all: Int, _ location: String) {
    if count == 0 { return }
    let line = Array("Only in make test-all: \(count) of \(all) cases at \(location)\n".utf8)
    _ = write(STDOUT_FILENO, line, line.count)
  }
}
