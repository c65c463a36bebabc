/// The screen of `top`.
extension TopModel {
  /// The minimum size in columns. A smaller screen only shows a sentence.
  static let minColumns = 60
  static let minRows = 10

  /// The lines of the screen: no more than it has rows, and none wider than it is.
  package mutating func screen(color: Bool) -> [String] {
    guard columns >= Self.minColumns, rows >= Self.minRows else { return tooSmall }
    if mode == .help { return Array(TopHelp.lines(width: columns, color: color).prefix(rows)) }
    let bottom = bottomLines(color)
    guard let workers else {
      let waiting = secondsWaited < 1 ? "" : " for \(durationText(secondsWaited.rounded(.down)))"
      return ["waiting for the daemon\(waiting)", "q quits"]
    }
    let head = headLines(workers, color)
    let body = rows - head.count - bottom.count
    let layout = TopLayout(
      columns: columns, rows: body, workers: shown.count, hasPane: hasPane, isWhole: isWhole)
    let pane = paneLines(layout, color)
    if layout.position == .whole { return head + filled(pane, to: body) + bottom }
    let below = layout.position == .below ? pane : []
    page = max(body - TopLayout.heading - below.count, 1)
    let position = Color.dim.paint(positionText(layout.listColumns), if: color)
    // The list is padded, so that the bottom line doesn't move when the list is short.
    let list = filled(
      [position] + listLines(layout.listColumns, color), to: body - below.count)
    return head + (layout.position == .beside ? beside(list, pane, in: layout) : list + below)
      + bottom
  }

  private func filled(_ lines: [String], to rows: Int) -> [String] {
    lines + Array(repeating: "", count: max(rows - lines.count, 0))
  }

  private func beside(_ list: [String], _ pane: [String], in layout: TopLayout) -> [String] {
    let border = showsUnicode ? "│ " : "| "
    return list.enumerated().map { row, line in
      let right = pane.indices.contains(row) ? pane[row] : ""
      return padded(line, to: layout.listColumns) + border + right
    }
  }

  private var tooSmall: [String] {
    let text =
      "This terminal has \(columns) columns and \(rows) rows; top needs \(Self.minColumns) and "
      + "\(Self.minRows). q quits."
    return wrapped(text, to: max(columns, 1)).prefix(max(rows, 1)).map {
      shortened($0, to: max(columns, 1))
    }
  }

  // MARK: above the list

  private func headLines(_ workers: [WorkerReport], _ color: Bool) -> [String] {
    let pressure = daemon.map { pressureLines($0, width: columns, color: color) } ?? []
    let saved = savedNowText(workers).map { [Color.bold.paint("saved now \($0)", if: color)] } ?? []
    let totals = wrapped(totalsLine(workers, showsSaved: false), to: columns).map {
      shortened($0, to: columns)
    }
    let curves = rows < 14 ? "" : history.line(width: columns, unicode: showsUnicode)
    let today = rows < 20 ? nil : savingsLines(daemon?.savings).first
    let savings = today.map { wrapped($0, to: columns) } ?? []
    let lines = saved + pressure + totals + savings + (curves.isEmpty ? [] : [curves])
    return Array(lines.prefix(max(rows / 3, 2)))
  }

  /// A line such as `1–12 of 30, by footprint, largest first; only those with "bot"`.
  private func positionText(_ columns: Int) -> String {
    let end = min(first + page, shown.count)
    let dash = showsUnicode ? "–" : "-"
    var text = shown.isEmpty ? "none" : "\(first + 1)\(dash)\(end)"
    text += " of \(shown.count), by \(order.text)\(isReversed ? ", reversed" : "")"
    if !filter.isEmpty { text += "; only those with \"\(escaped(filter))\"" }
    return shortened(text, to: columns)
  }

  // MARK: the list

  /// The titles, and the workers from `first` on.
  private mutating func listLines(_ columns: Int, _ color: Bool) -> [String] {
    first = max(min(first, shown.count - page, selectedIndex), selectedIndex - page + 1, 0)
    // The marks of the selected line need two columns.
    let width = columns - 2
    let lines = topTable(shown, cpu: cpu, order: order, width: width)
      .lines(width: width, color: color)
    let visible = shown.indices.dropFirst(first).prefix(page).map { index in
      guard index == selectedIndex else { return "  " + lines[index + 1] }
      let text = "\(showsUnicode ? "▸" : ">") " + withoutColours(lines[index + 1])
      return color ? reversed(text, columns) : text
    }
    return ["  " + (lines.first ?? "")] + visible
  }

  /// Inverts a line over the whole width of the list.
  private func reversed(_ text: String, _ columns: Int) -> String {
    "\u{1B}[7m\(padded(text, to: columns))\u{1B}[0m"
  }

  // MARK: below everything

  private func bottomLines(_ color: Bool) -> [String] {
    let (text, hue) = bottomText
    let lines = wrapped(text, to: columns).prefix(3).map { shortened($0, to: columns) }
    return lines.map { hue?.paint($0, if: color) ?? $0 }
  }

  private var bottomText: (String, Color?) {
    switch mode {
    case .filter:
      return ("/\(escaped(filter))_  Enter keeps the filter, Escape clears it", .bold)
    case .question(let action, let worker): return (action.question(about: worker) ?? "", .yellow)
    case .list, .help: break
    }
    if secondsWaited >= 2 {
      return ("the daemon has not answered for \(durationText(secondsWaited.rounded(.down)))", .red)
    }
    if let message { return (message.text, message.isFailure ? .red : .bold) }
    let log = pane == .log ? ["u d scroll", isWhole ? "Enter list" : "Enter full"] : []
    let keys = "? help  / filter  s sort  t tree  l log  m memory  q quit"
    // The hints that there is room for.
    let text = log.reduce(keys) { $0.count + 2 + $1.count <= columns ? "\($0)  \($1)" : $0 }
    return (text, .dim)
  }
}

/// Removes colours from a text that this module has coloured.
func withoutColours(_ text: String) -> String {
  var result = ""
  var isSequence = false
  for scalar in text.unicodeScalars {
    if isSequence {
      isSequence = scalar != "m"
    } else if scalar == "\u{1B}" {
      isSequence = true
    } else {
      result.unicodeScalars.append(scalar)
    }
  }
  return result
}

/// The table of `top`: that of `ps`, with processor use and, if a worker is protected, a column for
/// that: there is seldom room for the end of its reason. Columns that a narrow screen has no room
/// for are left out, the reasons last.
func topTable(
  _ workers: [WorkerReport], cpu: [String: Double], order: WorkerOrder, width: Int
) -> Table {
  var table = wholeWorkerTable(workers, cpu: cpu)
  table.remove("BAND")
  let minStateWidth = 10
  if let state = table.columns.firstIndex(where: { $0.title == "STATE" }) {
    table.columns[state].minWidth = minStateWidth
  }
  table.leaveOut(
    ["PID", "IMAGE", "PURGEABLE", "HOST", "PROJECT"], of: width, untilLastHas: 30)
  let minReasonWidth = 12
  guard !table.hasRoomForLast(minReasonWidth, of: width) else { return table }
  table.remove("REASON")
  let last = [order == .saved ? nil : "SAVED", order == .cpu ? "FOR" : "CPU"].compactMap { $0 }
  for title in last where !table.fitsShortened(width) { table.remove(title) }
  return table
}
