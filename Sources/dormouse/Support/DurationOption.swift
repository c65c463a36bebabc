import ArgumentParser
import PolicyFile

/// Reads an option's duration: `500ms`, `90s`, `2m`, `1h`; a number alone is in seconds.
@Sendable func durationOption(_ text: String) throws -> Duration {
  switch OptionUnits.duration(text) {
  case .success(let duration): return duration
  case .failure(let problem): throw ValidationError("it \(problem)")
  }
}
