import Control
import Drawing

// Numbers for people, the same in pictures, tables and sentences.

/// `16 MB`, `1.4 MB`: with a decimal only if it isn't 0.
func sizeWords(_ bytes: Int64) -> String {
  let text = sizeText(bytes)
  guard let point = text.firstIndex(of: "."), text[point...].hasPrefix(".0 ") else { return text }
  return String(text[..<point] + text[text.index(point, offsetBy: 2)...])
}

/// `+12.5 %`, `−3 %`; a limit has no sign.
func percentWords(_ percent: Double) -> String {
  let text = fixed(percent, percent.magnitude < 9.95 ? 1 : 0)
  return "\(text.hasSuffix(".0") ? String(text.dropLast(2)) : text) %"
}

/// A moment on an axis or in a list, as exact as `step` is.
func momentWords(_ seconds: Double, step: Double) -> String {
  if seconds >= 60 { return durationText(seconds) }
  return "\(fixed(seconds, step < 0.0095 ? 3 : step < 0.095 ? 2 : step < 0.95 ? 1 : 0)) s"
}

extension WarningEffect {
  /// One sentence.
  var sentence: String {
    guard givenBack > 0 else { return "warned: nothing freed (\(sizeWords(before)))" }
    return
      "warned: \(sizeWords(givenBack)) freed (\(sizeWords(before)) → \(sizeWords(after))), "
      + "at rest after \(restWords)"
  }

  /// The time can't be more exact than the interval of the samples.
  var restWords: String { durationText(restSeconds) }
}
