/// The threads that run or wait for a processor.
public enum RunnableThreads {
  /// The number of such threads on the whole machine, including the calling one; nil if /proc
  /// doesn't show it.
  public static func count() -> Int? {
    // If /proc can't be read, there is no number.
    (try? readText("/proc/loadavg")).flatMap(count(in:))
  }

  /// - Parameter text: a line such as `0.20 0.18 0.12 1/80 11206` (proc_loadavg(5)).
  static func count(in text: String) -> Int? {
    let fields = text.split(separator: " ")
    guard fields.count >= 4 else { return nil }
    return fields[3].split(separator: "/").first.flatMap { Int($0) }
  }
}
