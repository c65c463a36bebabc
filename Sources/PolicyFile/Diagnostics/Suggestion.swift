/// Returns the nearest valid spelling of a word: one that differs in case only, that begins with
/// the word, or that is at most two edits away. nil: there is none.
package func nearest(to word: String, among candidates: [String]) -> String? {
  guard (1...64).contains(word.unicodeScalars.count) else { return nil }
  let lowered = word.lowercased()
  if let same = candidates.first(where: { $0.lowercased() == lowered }) { return same }

  let scored = candidates.map { ($0, editDistance(lowered, $0.lowercased())) }
  // Two edits turn any short word into any other, so at least half of the word must remain.
  let close = scored.filter { $0.1 <= 2 && $0.1 * 2 <= word.unicodeScalars.count }
  if let best = close.min(by: { $0.1 < $1.1 }) { return best.0 }

  guard word.unicodeScalars.count >= 3 else { return nil }
  return candidates.first {
    $0.lowercased().hasPrefix(lowered) || ($0.count >= 3 && lowered.hasPrefix($0.lowercased()))
  }
}

/// Returns `did you mean …?` with the nearest valid spelling, or nil if there is none.
func didYouMean(_ word: String, among candidates: [String]) -> String? {
  nearest(to: word, among: candidates).map { "did you mean `\($0)`?" }
}

/// The number of insertions, deletions, replacements and swaps of neighbours (optimal string
/// alignment).
func editDistance(_ left: String, _ right: String) -> Int {
  let a = Array(left.unicodeScalars)
  let b = Array(right.unicodeScalars)
  if a.isEmpty || b.isEmpty { return max(a.count, b.count) }
  var beforeLast: [Int] = []
  var last = Array(0...b.count)
  for i in 1...a.count {
    var row = [i]
    for j in 1...b.count {
      let replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
      var best = min(replaced, last[j] + 1, row[j - 1] + 1)
      if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
        best = min(best, beforeLast[j - 2] + 1)
      }
      row.append(best)
    }
    (beforeLast, last) = (last, row)
  }
  return last[b.count]
}

/// Lists words in backquotes, with commas and "or" before the last one.
func listed(_ names: [String]) -> String {
  let quoted = names.map { "`\($0)`" }
  guard quoted.count > 1, let last = quoted.last else { return quoted.first ?? "nothing" }
  return quoted.dropLast().joined(separator: ", ") + " or " + last
}
