import Control
import Drawing

// These functions format numbers for people, in pictures, tables and sentences.

/// A size such as `16 MB` or `1.4 MB`. A decimal of 0 is left out.
func shortSizeText(_ bytes: Int64) -> String {
  let text = sizeText(bytes)
  guard let point = text.firstIndex(of: "."), text[point...].hasPrefix(".0 ") else { return text }
  return String(text[..<point] + text[text.index(point, offsetBy: 2)...])
}

/// A percentage such as `+12.5 %` or `−3 %`. A limit has no sign.
func percentText(_ percent: Double) -> String {
  let text = fixed(percent, percent.magnitude < 9.95 ? 1 : 0)
  return "\(text.hasSuffix(".0") ? String(text.dropLast(2)) : text) %"
}

/// A moment on an axis or in a list, rounded to the resolution `step`.
func momentText(_ seconds: Double, step: Double) -> String {
  if seconds >= 60 { return durationText(seconds) }
  return "\(fixed(seconds, step < 0.0095 ? 3 : step < 0.095 ? 2 : step < 0.95 ? 1 : 0)) s"
}

extension WarningEffect {
  /// A sentence that describes the warning and its effect.
  var sentence: String {
    guard givenBack > 0 else { return "warned: nothing freed (\(shortSizeText(before)))" }
    return
      "warned: \(shortSizeText(givenBack)) freed "
      + "(\(shortSizeText(before)) → \(shortSizeText(after))), "
      + "at rest after \(fallTimeText)"
  }

  /// The time that the fall took. It can't be more precise than the interval of the samples.
  var fallTimeText: String { durationText(fallSeconds) }
}
