import ArgumentParser
import PolicyFile

/// Reads an option's duration: `500ms`, `90s`, `2m`, `1h`. A number alone is in seconds.
@Sendable func durationOption(_ text: String) throws -> Duration {
  switch OptionUnits.duration(text) {
  case .success(let duration): return duration
  case .failure(let problem): throw ValidationError("it \(problem)")
  }
}

/// Reads an option's size: `512KB`, `100MB`, `2GB`. The result is in bytes.
@Sendable func sizeOption(_ text: String) throws -> Double {
  switch OptionUnits.size(text) {
  case .success(let bytes): return Double(bytes)
  case .failure(let problem): throw ValidationError("it \(problem)")
  }
}
