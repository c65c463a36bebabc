import ArgumentParser
import Control
import PolicyFile

/// Reads an option's duration: `500ms`, `90s`, `2m`, `1h`. A number alone is in seconds.
@Sendable func durationOption(_ text: String) throws -> Duration {
  try OptionUnits.duration(text).mapError { ValidationError("it \($0)") }.get()
}

/// Reads an option's size: `512KB`, `100MB`, `2GB`. The result is in bytes.
@Sendable func sizeOption(_ text: String) throws -> Double {
  try Double(OptionUnits.size(text).mapError { ValidationError("it \($0)") }.get())
}

/// Reads the duration of an option that ArgumentParser has read as a text.
func duration(_ text: String, of option: String) throws -> Duration {
  try value(OptionUnits.duration(text), of: option)
}

/// Reads the size of an option that ArgumentParser has read as a text, in bytes.
func size(_ text: String, of option: String) throws -> Int64 {
  try value(OptionUnits.size(text), of: option)
}

/// Checks the number of an option, for the `validate` of its command.
func checkNumber<Number: Comparable>(
  _ option: String, _ number: Number?, in range: ClosedRange<Number>
) throws {
  guard let number, !range.contains(number) else { return }
  throw ValidationError(
    "\(option) is a number from \(range.lowerBound) to \(range.upperBound), not \(number).")
}

/// Reads the value of `--for`, in seconds.
///
/// - Parameter limit: The maximum, such as `24h`.
func secondsOfFor(_ text: String, upTo limit: String) throws -> Double {
  let time = try duration(text, of: "--for")
  guard time > .zero, try time <= duration(limit, of: "--for") else {
    throw CommandFailure(
      .usage, "--for must be more than 0 and at most \(limit), not `\(escaped(text))`")
  }
  return time / .seconds(1)
}

private func value<Value>(
  _ result: Result<Value, OptionUnits.UnitError>, of option: String
) throws -> Value {
  try result.mapError { CommandFailure(.usage, escaped("\(option) \($0)")) }.get()
}
