import Policy

/// Conversion of signal names, as operators write them: `USR1` or `SIGUSR1`.
public enum SignalName {
  /// The name with its prefix, such as `SIGUSR1`, or `signal 42` for a signal without a name.
  public static func text(_ number: Int32) -> String {
    Signals.named.first { $0.number == number }.map { "SIG\($0.name)" } ?? "signal \(number)"
  }

  /// The number of a signal that is given by name, with or without `SIG`, or by its number 1–64.
  /// Returns nil for any other text.
  public static func number(_ text: String) -> Int32? {
    let upper = text.uppercased()
    let short = upper.hasPrefix("SIG") ? String(upper.dropFirst(3)) : upper
    return Signals.named.first { $0.name == short }?.number
      ?? Int32(text).flatMap { (1...64).contains($0) ? $0 : nil }
  }
}
