import Yams

/// Durations and sizes as options of the command line take them: written as in a policy file.
public enum OptionUnits {
  public static func duration(_ text: String) -> Result<Duration, UnitError> {
    read(text, with: .duration)
  }

  /// Bytes.
  public static func size(_ text: String) -> Result<Int64, UnitError> {
    read(text, with: .size).map(\.bytes)
  }

  private static func read<Value>(
    _ text: String, with converter: Converter<Value>
  ) -> Result<Value, UnitError> {
    converter.convert(Node(text)).mapError { problem in
      let what = problem.message ?? "must be \(converter.expects), not `\(shortened(text))`"
      return UnitError(
        description: [what, problem.suggestion].compactMap { $0 }.joined(separator: "; "))
    }
  }

  /// Follows the option's name.
  public struct UnitError: Error, Sendable, CustomStringConvertible {
    public var description: String
  }
}
