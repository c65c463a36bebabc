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

/// Seconds for output, with two units at most: `14 ms`, `1.2 s`, `4 m 5 s`, `3 d 4 h`.
public func durationText(_ seconds: Double) -> String {
  guard seconds.isFinite, seconds < 3.2e9 else { return "?" }
  let seconds = max(seconds, 0)
  if seconds == 0 { return "0 s" }
  if seconds < 0.00995 { return "\(decimal(seconds * 1000)) ms" }
  if seconds < 0.9995 { return "\(Int((seconds * 1000).rounded())) ms" }
  if seconds < 9.95 { return "\(decimal(seconds)) s" }
  let whole = Int(seconds.rounded())
  let units = [(86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s")]
  for (size, name, smaller, smallerName) in units where whole >= size {
    let rest = whole % size / smaller
    return rest == 0 ? "\(whole / size) \(name)" : "\(whole / size) \(name) \(rest) \(smallerName)"
  }
  return "\(whole) s"
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
