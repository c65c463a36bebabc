import YAML

/// Reads durations and sizes as all options of the command line accept them: as in a policy file.
public enum OptionUnits {
  /// Reads a duration. In addition to a policy's units, a number alone is in seconds, and there are
  /// days and weeks.
  public static func duration(_ text: String) -> Result<Duration, UnitError> {
    let seconds: [String: Int64] = ["": 1, "d": 86_400, "w": 604_800]
    guard let quantity = Quantity(text), !quantity.negative, let unit = seconds[quantity.unit],
      let milliseconds = quantity.scaled(by: unit * 1_000)
    else { return read(text, with: .duration) }
    return milliseconds <= maxMilliseconds
      ? .success(.milliseconds(milliseconds))
      : .failure(UnitError(description: Problem.tooLong.message ?? ""))
  }

  /// Reads a size in bytes.
  public static func size(_ text: String) -> Result<Int64, UnitError> {
    read(text, with: .size).map(\.bytes)
  }

  private static func read<Value>(
    _ text: String, with converter: Converter<Value>
  ) -> Result<Value, UnitError> {
    converter.convert(.scalar(.init(text, style: .doubleQuoted))).mapError { problem in
      let what = problem.message ?? "must be \(converter.expects), not `\(shortened(text))`"
      return UnitError(
        description: [what, problem.suggestion].compactMap { $0 }.joined(separator: "; "))
    }
  }

  /// The error. Its text follows the option's name.
  public struct UnitError: Error, Sendable, CustomStringConvertible {
    public var description: String
  }
}
