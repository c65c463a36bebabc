/// Aligned columns with two spaces between them. No cell contains a line break: callers escape.
package struct Table {
  package struct Column: ExpressibleByStringLiteral {
    var title: String
    var alignsRight = false
    /// The minimum width to which cells are shortened in a narrow terminal; nil if they are never
    /// shortened.
    var minWidth: Int?

    package init(title: String, alignsRight: Bool = false, minWidth: Int? = nil) {
      self.title = title
      self.alignsRight = alignsRight
      self.minWidth = minWidth
    }

    package init(stringLiteral title: String) { self.init(title: title) }

    package static func number(_ title: String) -> Column {
      Column(title: title, alignsRight: true)
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

  /// The text of a cell without a value.
  static let noValue = "-"

  var columns: [Column]
  package var rows: [[Cell]] = []

  package init(columns: [Column], rows: [[Cell]] = []) {
    self.columns = columns
    self.rows = rows
  }

  /// True if no line is longer than `width`.
  func fits(_ width: Int) -> Bool {
    lines(width: nil, color: false).allSatisfy { displayWidth($0) <= width }
  }

  /// The width that the last cell keeps before other cells are shortened for it.
  private static let enoughForLast = 20
  /// If the last cell has less room, it is cut and not wrapped.
  private static let minToWrap = 16
  /// The width that `leaveOut` counts for a column that may be shortened.
  private static let enoughForShortened = 24

  /// Removes columns by title, in this order, until the last column has room for `enough` columns
  /// of the terminal, or for all of its cells.
  mutating func leaveOut(_ titles: [String], of width: Int, untilLastHas enough: Int) {
    for title in titles {
      if !hasRoomForLast(enough, of: width) { remove(title) }
    }
  }

  /// Removes the column of this title, if there is one.
  mutating func remove(_ title: String) {
    guard let index = columns.firstIndex(where: { $0.title == title }) else { return }
    columns.remove(at: index)
    for row in rows.indices { rows[row].remove(at: index) }
  }

  /// Removes the column of this title if no row has a value in it.
  mutating func removeIfEmpty(_ title: String) {
    guard let index = columns.firstIndex(where: { $0.title == title }) else { return }
    if rows.allSatisfy({ $0[index].text == Self.noValue }) { remove(title) }
  }

  /// True if the last column has room for `enough` columns of the terminal, or for all of its
  /// cells.
  func hasRoomForLast(_ enough: Int, of width: Int) -> Bool {
    let widths = naturalWidths
    let others = columns.indices.dropLast().reduce(0) { sum, index in
      sum + 2
        + (columns[index].minWidth == nil
          ? widths[index] : min(widths[index], Self.enoughForShortened))
    }
    return width - others >= min(widths.last ?? 0, enough)
  }

  /// True if the table fits when all columns that may be shortened are.
  func fitsShortened(_ width: Int) -> Bool {
    let widths = naturalWidths
    let sum = columns.indices.reduce(-2) { sum, index in
      sum + 2 + min(widths[index], columns[index].minWidth ?? widths[index])
    }
    return sum <= width
  }

  private var naturalWidths: [Int] {
    columns.indices.map { index in
      rows.reduce(displayWidth(columns[index].title)) { max($0, displayWidth($1[index].text)) }
    }
  }

  /// The lines of the table. Columns that don't fit continue in further blocks, each with the first
  /// `leading` columns.
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

  /// The lines of the table.
  ///
  /// - Parameters:
  ///   - width: the terminal's width in columns; nil for no limit. Longer lines are cut: cells that
  ///     may be shortened, and the last cell, lose their end.
  ///   - wrapsLast: whether the last cell is wrapped instead.
  package func lines(width: Int?, color: Bool, wrapsLast: Bool = false) -> [String] {
    let header = columns.map { Cell($0.title, .bold) }
    let all = [header] + rows
    var widths = naturalWidths
    if let width {
      let last = min(widths.last ?? 0, Self.enoughForLast)
      var excess = widths.dropLast().reduce(0) { $0 + $1 + 2 } + last - width
      for index in columns.indices.dropLast() where excess > 0 {
        guard let minWidth = columns[index].minWidth, widths[index] > minWidth else { continue }
        let cut = min(excess, widths[index] - minWidth)
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

  /// The lines of the table. A cell that doesn't fit its column follows below its row, after its
  /// column's title.
  ///
  /// - Parameter order: groups of titles. The columns of the first group are narrowed first.
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
          let text = cell.color?.paint(cell.text, if: color) ?? cell.text
          shown[index].text = ""
          below += wrapped(
            "    " + (title.isEmpty ? "" : "\(title): ") + text, to: width, indent: 6)
        }
        return [line(shown, widths: widths, room: nil, color: color)] + below
      }
  }

  /// Narrows columns step by step, from one cell's width to the next smaller one's, until all
  /// columns fit.
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
      let shown = cell.color?.paint(text, if: color) ?? text
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
