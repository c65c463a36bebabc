/// The keys of `top`, for its screen. docs/top.md has the same list.
package enum TopHelp {
  package static let keys: [(keys: String, text: String)] = [
    ("up down j k", "select a worker"),
    ("PgUp PgDn", "one a page away; Home, End: first, last"),
    ("s", "next order: footprint, name, state, time in the state, CPU, saved"),
    ("r", "reverse the order"),
    ("/", "only workers with a text in name, state, host"),
    ("Escape", "remove the filter, or close what is open"),
    ("t", "processes of the selected worker"),
    ("l", "its log as it is written; again: hide it"),
    ("u d g", "scroll the log back, forward, to its end"),
    ("Enter", "without the list; again: with it"),
    ("m", "its memory by kind"),
    ("o", "largest processes that belong to no worker"),
    ("W S H F B", "wake suspend hibernate foreground background"),
    ("R T", "restart, terminate it; top asks first"),
    ("P", "protect it, or end its protection"),
    ("? h", "this page"),
    ("q", "quit"),
  ]

  static func lines(width: Int, color: Bool) -> [String] {
    let widest = keys.map(\.keys.count).max() ?? 0
    let rows = keys.flatMap { entry in
      let shown = padded(Color.bold.paint(entry.keys, if: color), to: widest)
      return wrapped("  \(shown)  \(entry.text)", to: width, indent: widest + 4)
    }
    let notes = wrapped(
      "CPU is a share of one processor. Keys that change a worker are capital letters.", to: width)
    let last = "q quits; any other key closes this page."
    return ["Keys of dormouse top", ""] + rows + [""] + notes + [last]
  }
}
