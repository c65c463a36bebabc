/// Columns that line up, two spaces apart. No cell contains a line break: callers escape.
package struct Table {
  package struct Column {
    var title: String
    var alignsRight = false
    /// Where the terminal is too narrow, cells are shortened to no less than this; nil: never.
    var least: Int?

    package init(title: String, alignsRight: Bool = false, least: Int? = nil) {
      self.title = title
      self.alignsRight = alignsRight
      self.least = least
    }
  }
  package struct Cell {
    var text: String
    var color: Color?

    package init(_ text: String, _ color: Color? = nil) {
      self.text = text
      self.color = color
    }
  }

  var columns: [Column]
  package var rows: [[Cell]] = []

  package init(columns: [Column], rows: [[Cell]] = []) {
    self.columns = columns
    self.rows = rows
  }

  /// No line is longer than `width`.
  func fits(_ width: Int) -> Bool {
    lines(width: nil, color: false).allSatisfy { displayWidth($0) <= width }
  }

  /// Of the last cell, before others are shortened for it.
  private static let enoughForLast = 20
  /// Less isn't worth breaking lines for: the last cell is cut then.
  private static let minToWrap = 16
  /// Of a column that may be shortened, in `leaveOut`.
  private static let enoughForShortened = 24

  /// Without the columns of these titles, in this order, until the last one has room: for `enough`
  /// columns of the terminal, or for all of its cells.
  mutating func leaveOut(_ titles: [String], of width: Int, untilLastHas enough: Int) {
    for title in titles {
      if !hasRoomForLast(enough, of: width) { remove(title) }
    }
  }

  /// The column of this title, if there is one.
  mutating func remove(_ title: String) {
    guard let index = columns.firstIndex(where: { $0.title == title }) else { return }
    columns.remove(at: index)
    for row in rows.indices { rows[row].remove(at: index) }
  }

  /// For `enough` columns of the terminal, or for all of its cells.
  func hasRoomForLast(_ enough: Int, of width: Int) -> Bool {
    let widths = naturalWidths
    let others = columns.indices.dropLast().reduce(0) { sum, index in
      sum + 2
        + (columns[index].least == nil
          ? widths[index] : min(widths[index], Self.enoughForShortened))
    }
    return width - others >= min(widths.last ?? 0, enough)
  }

  /// All columns are whole, but for those that may be shortened.
  func fitsShortened(_ width: Int) -> Bool {
    let widths = naturalWidths
    let sum = columns.indices.reduce(-2) { sum, index in
      sum + 2 + min(widths[index], columns[index].least ?? widths[index])
    }
    return sum <= width
  }

  private var naturalWidths: [Int] {
    columns.indices.map { index in
      rows.reduce(displayWidth(columns[index].title)) { max($0, displayWidth($1[index].text)) }
    }
  }

  /// As `lines`; columns that don't fit go on in further blocks, each with the `leading` first ones.
  package func folded(width: Int?, leading: Int = 1, color: Bool) -> [String] {
    guard let width, !fits(width) else { return lines(width: width, color: color) }
    let widths = naturalWidths
    let lead = Array(columns.indices.prefix(leading))
    let start = lead.reduce(-2) { $0 + widths[$1] + 2 }
    var groups: [[Int]] = []
    var used = width
    for index in columns.indices.dropFirst(leading) {
      if used + 2 + widths[index] > width {
        groups.append([])
        used = start
      }
      groups[groups.count - 1].append(index)
      used += 2 + widths[index]
    }
    return groups.enumerated().flatMap { number, group in
      let shown = lead + group
      let block = Table(
        columns: shown.map { columns[$0] }, rows: rows.map { row in shown.map { row[$0] } })
      return (number > 0 ? [""] : []) + block.lines(width: width, color: color)
    }
  }

  /// `width`: columns of the terminal, where there is one; longer lines lose the end of cells that may be
  /// shortened, and of their last one, rather than wrap. `wrapsLast`: the last cell continues below itself
  /// instead.
  package func lines(width: Int?, color: Bool, wrapsLast: Bool = false) -> [String] {
    let header = columns.map { Cell($0.title, .bold) }
    let all = [header] + rows
    var widths = columns.indices.map { index in
      all.map { displayWidth($0[index].text) }.max() ?? 0
    }
    if let width {
      let last = min(widths.last ?? 0, Self.enoughForLast)
      var excess = widths.dropLast().reduce(0) { $0 + $1 + 2 } + last - width
      for index in columns.indices.dropLast() where excess > 0 {
        guard let least = columns[index].least, widths[index] > least else { continue }
        let cut = min(excess, widths[index] - least)
        widths[index] -= cut
        excess -= cut
      }
    }
    let before = widths.dropLast().reduce(0) { $0 + $1 + 2 }
    let room = width.map { max($0 - before, 1) }
    guard wrapsLast, let room, room >= Self.minToWrap else {
      return all.map { row in line(row, widths: widths, room: room, color: color) }
    }
    let indent = padded("", to: before)
    return all.flatMap { row in
      guard var first = row.last else { return [""] }
      let parts = wrapped(first.text, to: room)
      first.text = parts.first ?? ""
      return [line(row.dropLast() + [first], widths: widths, room: room, color: color)]
        + parts.dropFirst().map { indent + shortened($0, to: room) }
    }
  }

  /// As `lines`; a cell that has no room in its column follows below its row, after its column's title.
  ///
  /// - Parameter order: titles of the columns that get narrower, the first ones first; those in one entry together.
  package func spilled(_ order: [[String]], width: Int?, color: Bool) -> [String] {
    guard let width, !fits(width) else { return lines(width: nil, color: color) }
    let widths = order.reduce(naturalWidths) { narrowed($0, $1, to: width) }
    let header = columns.map { Cell($0.title, .bold) }
    return [line(header, widths: widths, room: nil, color: color)]
      + rows.flatMap { row in
        var shown = row
        var below: [String] = []
        for (index, cell) in row.enumerated() where displayWidth(cell.text) > widths[index] {
          let title = columns[index].title
          let text = cell.color.map { color ? $0.paint(cell.text) : cell.text } ?? cell.text
          shown[index].text = ""
          below += wrapped(
            "    " + (title.isEmpty ? "" : "\(title): ") + text, to: width, indent: 6)
        }
        return [line(shown, widths: widths, room: nil, color: color)] + below
      }
  }

  /// Step by step, from one cell's width to the next smaller one's, until all columns fit.
  private func narrowed(_ widths: [Int], _ titles: [String], to width: Int) -> [Int] {
    var widths = widths
    func next(_ index: Int) -> Int? {
      let title = displayWidth(columns[index].title)
      return (rows.map { displayWidth($0[index].text) } + [title])
        .filter { $0 >= title && $0 < widths[index] }.max()
    }
    while widths.reduce(-2, { $0 + $1 + 2 }) > width {
      let narrower = columns.indices.filter { titles.contains(columns[$0].title) }
        .compactMap { index in next(index).map { (index: index, width: $0) } }
      guard let widest = narrower.max(by: { widths[$0.index] < widths[$1.index] }) else { break }
      widths[widest.index] = widest.width
    }
    return widths
  }

  private func line(_ row: [Cell], widths: [Int], room: Int?, color: Bool) -> String {
    var line = ""
    for (index, cell) in row.enumerated() {
      let isLast = index == row.count - 1
      let text = shortened(cell.text, to: isLast ? room : widths[index])
      let shown = cell.color.map { color && !text.isEmpty ? $0.paint(text) : text } ?? text
      let alignsRight = columns[index].alignsRight
      line +=
        isLast && !alignsRight
        ? shown : padded(shown, to: widths[index], alignsRight: alignsRight)
      if !isLast { line += "  " }
    }
    while line.hasSuffix(" ") { line.removeLast() }
    return line
  }
}

/// The lines of `text`, broken at blanks. A word that is longer than a line stays whole: paths are
/// there to be copied.
///
/// - Parameters:
///   - room: columns; nil: one line.
///   - indent: blanks before each line but the first.
///   - cutsWords: a word that is longer than a line is cut, where a longer line would be lost.
package func wrapped(
  _ text: String, to room: Int?, indent: Int = 0, cutsWords: Bool = false
) -> [String] {
  guard let room, displayWidth(text) > room else { return [text] }
  var lines: [String] = []
  var line = ""
  var isBegun = false
  for word in text.split(separator: " ", omittingEmptySubsequences: false) {
    let isBlank = line.allSatisfy { $0 == " " }
    // The blanks that the text begins with stay, those at a break don't.
    let longer = !isBegun || isBlank && !lines.isEmpty ? String(word) : "\(line) \(word)"
    isBegun = true
    let columns = lines.isEmpty ? room : max(room - indent, 1)
    if isBlank || displayWidth(longer) <= columns {
      line = longer
    } else {
      lines.append(line)
      line = String(word)
    }
    while cutsWords, !line.dropFirst().isEmpty, displayWidth(line) > columns {
      let part = beginning(of: line, in: columns)
      // A character that is wider than the room.
      lines.append(part.isEmpty ? String(line.removeFirst()) : part)
      line.removeFirst(part.count)
    }
  }
  let blanks = padded("", to: indent)
  return (lines + [line]).enumerated().map { $0.offset == 0 ? $0.element : blanks + $0.element }
}

/// `text` behind `lead`; where it is broken, further lines begin below it.
///
/// - Parameter least: columns for the text, however narrow the terminal is.
package func hanging(_ lead: String, _ text: String, to width: Int?, least: Int = 20) -> [String] {
  let indent = displayWidth(lead)
  return wrapped(text, to: width.map { max($0 - indent, least) }).enumerated().map {
    ($0.offset == 0 ? lead : padded("", to: indent)) + $0.element
  }
}

/// `text` in a column of this width.
package func padded(_ text: String, to width: Int, alignsRight: Bool = false) -> String {
  let blanks = String(repeating: " ", count: max(width - displayWidth(text), 0))
  return alignsRight ? blanks + text : text + blanks
}

/// What of `text` has room.
private func beginning(of text: String, in room: Int) -> String {
  var used = 0
  return String(
    text.prefix { character in
      used += displayWidth(String(character))
      return used <= room
    })
}

/// `text`, or its beginning and an ellipsis.
package func shortened(_ text: String, to room: Int?) -> String {
  guard let room, displayWidth(text) > room else { return text }
  return beginning(of: text, in: room - 1) + "…"
}

/// Terminal columns that a text takes: wide East Asian characters and emoji take two, marks that
/// combine none. An approximation of Unicode TR 11 that needs no table. Colours (`Color.paint`) take none.
package func displayWidth(_ text: String) -> Int {
  var isColour = false
  return text.unicodeScalars.reduce(0) { width, scalar in
    if isColour || scalar == "\u{1B}" {
      isColour = scalar != "m"
      return width
    }
    switch scalar.value {
    case 0..<0x300: return width + 1
    case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
      return width + 2
    default:
      switch scalar.properties.generalCategory {
      case .nonspacingMark, .enclosingMark, .format: return width
      default: return width + 1
      }
    }
  }
}
