/// The keys of `top`, for its screen; docs/top.md has the same.
package enum TopHelp {
  package static let keys: [(keys: String, text: String)] = [
    ("up down j k", "select a worker"),
    ("PgUp PgDn", "one a page away; Home, End: the first, the last"),
    ("s", "next order: footprint, name, state, time in the state, CPU, saved"),
    ("r", "reverse the order"),
    ("/", "only workers with a text in name, state, host"),
    ("Escape", "remove the filter, or close what is beside the list"),
    ("t", "processes of the selected worker"),
    ("l", "its log, as it is written; again: without it"),
    ("u d g", "scroll the log back, forward, to its end"),
    ("Enter", "without the list; again: beside or below it"),
    ("m", "its memory by kind"),
    ("o", "largest processes that belong to no worker"),
    ("W S H F B", "wake, suspend, hibernate, to the foreground, back"),
    ("R T", "restart, terminate it; top asks first"),
    ("P", "protect it, or end its protection"),
    ("? h", "this page"),
    ("q", "quit"),
  ]

  static func lines(width: Int, color: Bool) -> [String] {
    let widest = keys.map(\.keys.count).max() ?? 0
    let indent = String(repeating: " ", count: widest + 4)
    let rows = keys.flatMap { entry in
      let gap = String(repeating: " ", count: widest - entry.keys.count + 2)
      let text = wrapped(entry.text, to: max(width - indent.count, 20))
      let shown = color ? Color.bold.paint(entry.keys) : entry.keys
      return ["  \(shown)\(gap)\(text.first ?? "")"] + text.dropFirst().map { indent + $0 }
    }
    let notes = wrapped(
      "CPU is a share of one processor. Keys that change a worker are capital letters.", to: width)
    return ["Keys of dormouse top", ""] + rows + [""] + notes + ["Any key closes this page."]
  }
}
