import Policy

/// A number of bytes with one decimal, in powers of 1024: `512 B`, `16.3 MB`.
public func sizeText(_ bytes: Int64) -> String {
  guard bytes.magnitude >= 1024 else { return "\(bytes) B" }
  var value = Double(bytes)
  for unit in ["KB", "MB", "GB"] {
    value /= 1024
    // The rounded value is compared: 1,048,570 bytes are 1.0 MB, not 1024.0 KB.
    if (value.magnitude * 10).rounded() < 10_240 { return "\(decimal(value)) \(unit)" }
  }
  return "\(decimal(value / 1024)) TB"
}

/// A duration in seconds, as `Duration.text` formats it, or `?` if the number can't be a time.
public func durationText(_ seconds: Double) -> String {
  guard seconds.isFinite, seconds < 3.2e9 else { return "?" }
  return Duration.seconds(max(seconds, 0)).text
}

/// The number with one decimal, which is always shown.
package func decimal(_ value: Double) -> String {
  let tenths = Int64((value.magnitude * 10).rounded())
  return "\(value < 0 && tenths > 0 ? "-" : "")\(tenths / 10).\(tenths % 10)"
}

/// A percentage, such as `0 %` or `12.3 %`. A value above 0 is never shown as 0.
package func percentText(_ percent: Double) -> String {
  if percent <= 0 { return "0 %" }
  return percent < 0.05 ? "less than 0.1 %" : "\(decimal(percent)) %"
}

/// A number with its noun, such as `1 worker` or `2 workers`.
public func counted(_ count: Int, _ noun: String, ending: String = "s") -> String {
  "\(count) \(noun)\(count == 1 ? "" : ending)"
}
