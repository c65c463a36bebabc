import Policy

/// Bytes for output, with one decimal, in powers of 1024 as in the talks: `512 B`, `16.3 MB`.
public func sizeText(_ bytes: Int64) -> String {
  guard bytes.magnitude >= 1024 else { return "\(bytes) B" }
  var value = Double(bytes)
  for unit in ["KB", "MB", "GB"] {
    value /= 1024
    // Compare what would be shown: 1,048,570 bytes are 1.0 MB, not 1024.0 KB.
    if (value.magnitude * 10).rounded() < 10_240 { return "\(decimal(value)) \(unit)" }
  }
  return "\(decimal(value / 1024)) TB"
}

/// Seconds for output, as `Duration.spoken`; `?`: no number that a time can be.
public func durationText(_ seconds: Double) -> String {
  guard seconds.isFinite, seconds < 3.2e9 else { return "?" }
  return Duration.seconds(max(seconds, 0)).spoken
}

/// One decimal, always shown.
func decimal(_ value: Double) -> String {
  let tenths = Int64((value.magnitude * 10).rounded())
  return "\(value < 0 && tenths > 0 ? "-" : "")\(tenths / 10).\(tenths % 10)"
}

/// Percent for people: `0 %`, `12.3 %`. What is more than 0 is never shown as 0.
func percentText(_ percent: Double) -> String {
  if percent <= 0 { return "0 %" }
  return percent < 0.05 ? "less than 0.1 %" : "\(decimal(percent)) %"
}

/// `1 worker`, `2 workers`.
public func counted(_ count: Int, _ noun: String) -> String {
  "\(count) \(noun)\(count == 1 ? "" : "s")"
}
