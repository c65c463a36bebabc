/// Round distances between the ticks of an axis.
public enum RoundSteps {
  /// Returns the smallest round distance in bytes that needs at most `count` steps up to `top`.
  /// Round distances are powers of two from 1 KiB on, because sizes are written in powers of 1024.
  public static func bytes(upTo top: Int64, count: Int) -> Int64 {
    var step: Int64 = 1024
    while step < 1 << 60, top > step * Int64(max(1, count)) { step *= 2 }
    return step
  }

  /// Returns the smallest round distance in seconds that needs at most `count` steps up to `top`.
  /// Round distances are 1, 2 and 5 below a second and up to ten, then fractions of minutes, hours
  /// and days.
  public static func seconds(upTo top: Double, count: Int) -> Double {
    let needed = top / Double(max(1, count))
    return seconds.first { $0 >= needed } ?? (needed / 86_400).rounded(.up) * 86_400
  }

  private static let seconds: [Double] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600,
    900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
  ]
}
