import Control
import Drawing
import Glibc
import Linux

/// The properties of the machine that affect the measurements.
public struct BenchMachine: Codable, Hashable, Sendable {
  public var cores: Int
  public var processor: String
  public var memoryBytes: Int64
  /// The kernel's release, as `uname -r` prints it.
  public var kernel: String
  /// The load average of the last minute before the run.
  public var loadBefore: Double
  /// The load average of the last minute after the run.
  public var loadAfter: Double
  /// The setting of transparent huge pages: `always`, `madvise` or `never`.
  public var hugePages: String
  /// The swap areas, each as `NAME (KIND)`.
  public var swap: [String]

  static func describe() -> BenchMachine {
    let load = currentLoad
    return BenchMachine(
      cores: onlineProcessors,
      // Only the report's reader needs the processor, so an unreadable file doesn't matter.
      processor: processor(parsing: (try? readText("/proc/cpuinfo")) ?? ""),
      memoryBytes: (try? MemoryInfo.read())?.total ?? 0,
      kernel: firstLine("/proc/sys/kernel/osrelease"), loadBefore: load, loadAfter: load,
      hugePages: chosen(firstLine("/sys/kernel/mm/transparent_hugepage/enabled")),
      swap: SwapArea.all().map { "\($0.name) (\($0.kind))" })
  }

  static var currentLoad: Double {
    var load = 0.0
    return getloadavg(&load, 1) == 1 ? load : 0
  }

  private static func firstLine(_ path: String) -> String {
    // Only the report's reader needs the line, so an unreadable file doesn't matter.
    String(((try? readText(path)) ?? "unknown").prefix { $0 != "\n" })
  }

  /// Returns the processor's name from the text of `/proc/cpuinfo`. x86 has `model name`; ARM has
  /// only numbers.
  static func processor(parsing text: String) -> String {
    for key in ["model name", "Model", "cpu model", "CPU implementer"] {
      for line in text.split(separator: "\n") where line.hasPrefix(key) {
        guard let colon = line.firstIndex(of: ":") else { continue }
        let value = line[line.index(after: colon)...].drop { $0 == " " }
        return key == "CPU implementer" ? "ARM implementer \(value)" : String(value)
      }
    }
    return "unknown processor"
  }

  /// Returns the word in brackets, such as `madvise` of `always [madvise] never`.
  static func chosen(_ text: String) -> String {
    let inner = text.drop { $0 != "[" }.dropFirst().prefix { $0 != "]" }
    return inner.isEmpty ? "unavailable" : String(inner)
  }

  var sentence: String {
    let count = "\(cores) core\(cores == 1 ? "" : "s")"
    let load = "load \(fixed(loadBefore, 1)) to \(fixed(loadAfter, 1))"
    let swaps = swap.isEmpty ? "no swap" : "swap on \(swap.joined(separator: ", "))"
    return escaped(
      "\(count), \(processor), \(sizeText(memoryBytes)), Linux \(kernel), \(load), "
        + "huge pages \(hugePages), \(swaps)")
  }
}

/// The number of milliseconds as text, with about three significant digits, for columns.
func millisecondsText(_ value: Double) -> String {
  fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0)
}
