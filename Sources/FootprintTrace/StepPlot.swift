import Control
import Drawing

/// The size and the characters of a picture on a terminal.
public struct TerminalStyle: Hashable, Sendable {
  /// The number of columns of the terminal.
  public var width: Int
  /// The number of lines of the plot itself.
  public var rows: Int
  public var color: Bool
  /// ASCII only, for terminals and logs that can't show other characters.
  public var ascii: Bool

  public init(width: Int = 80, rows: Int = 12, color: Bool = false, ascii: Bool = false) {
    self.width = min(max(width, 24), 1000)
    self.rows = min(max(rows, 3), 100)
    self.color = color
    self.ascii = ascii
  }

  /// Returns a line with characters that this terminal can show, cut to the terminal's width.
  func fit(_ line: String) -> String {
    guard ascii else { return shortened(line, to: width) }
    let text = Self.plain(line)
    return text.count > width ? text.prefix(width - 3) + "..." : text
  }

  /// Returns the line above a picture.
  func title(_ line: String) -> String {
    color ? Color.bold.paint(fit(line)) : fit(line)
  }

  /// Returns a line with characters that this terminal can show, wrapped to as many lines as it
  /// needs.
  func wrap(_ line: String, indent: Int) -> [String] {
    // The line is converted before it is wrapped, because the conversion may make it longer.
    let line = ascii ? Self.plain(line) : line
    let start = String(line.prefix(indent))
    let lines = wrapped(String(line.dropFirst(indent)), to: max(10, width - indent))
    let margin = String(repeating: " ", count: indent)
    return lines.enumerated().map { fit(($0.offset == 0 ? start : margin) + $0.element) }
  }

  static func plain(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "→": result += "->"
      case "−", "–": result += "-"
      case "…": result += "..."
      case "·": result += ","
      case _ where scalar.isASCII: result.unicodeScalars.append(scalar)
      default: result += "?"
      }
    }
  }
}

/// A footprint as a filled stair-step curve on axes.
struct StepPlot {
  let recording: Recording
  let style: TerminalStyle
  private let top: Int64
  private let seconds: Double

  private let step: Int64
  private let rows: Int
  private let labelWidth: Int
  private let columns: Int

  /// `minBytes` in bytes and `seconds` are the minimum extents of the axes.
  init(
    _ recording: Recording, style: TerminalStyle, minBytes: Int64 = 0, seconds: Double = 0
  ) {
    self.recording = recording
    self.style = style
    let peak = max(minBytes, recording.samples.map(\.footprint).max() ?? 0, 1024)
    let count = max(1, min(5, style.rows / 3))
    let step = RoundSteps.bytes(upTo: peak, count: count)
    let steps = Int((peak + step - 1) / step)
    self.step = step
    top = step * Int64(steps)
    // The number of lines is a multiple of the axis' steps.
    rows = steps * max(1, style.rows / steps)
    self.seconds = max(seconds, recording.seconds, 1e-3)
    labelWidth = (0...steps).map { shortSizeText(step * Int64($0)).count }.max() ?? 0
    columns = style.width - labelWidth - 3
  }

  /// The span of time that a column shows.
  private func span(_ column: Int) -> (from: Double, to: Double) {
    (
      seconds * Double(column) / Double(columns), seconds * Double(column + 1) / Double(columns)
    )
  }

  private func column(at moment: Double) -> Int {
    min(max(Int(moment / seconds * Double(columns)), 0), columns - 1)
  }

  var lines: [String] {
    let cells = (0..<columns).map(self.cells)
    let hues = style.color ? (0..<columns).map(hue) : []
    var lines = markLine.map { [$0] } ?? []
    for row in stride(from: rows - 1, through: 0, by: -1) {
      var line = label(ofRow: row)
      var painted: Color?
      for column in 0..<columns where !cells[column].isEmpty {
        let hue = style.color && cells[column][row] != " " ? hues[column] : painted
        if hue != painted, let hue { line += "\u{1B}[\(hue.rawValue)m" }
        painted = hue
        line.append(cells[column][row])
      }
      lines.append(line.trimmed + (painted == nil ? "" : "\u{1B}[0m"))
    }
    return lines + timeAxis
  }

  // MARK: columns

  /// The characters of a column, from the bottom. A cell shows an eighth of its height, or a third
  /// in ASCII. The column shows the highest value of its span, so that no peak is lost.
  private func cells(_ column: Int) -> [Character] {
    let (from, to) = span(column)
    guard let sample = recording.largest(from: from, to: to) else {
      return [Character](repeating: " ", count: rows)
    }
    let levels: [Character] = style.ascii ? Array(" .:#") : Array(" ▁▂▃▄▅▆▇█")
    let full = levels.count - 1
    let height = Double(sample.footprint) / Double(top) * Double(rows * full)
    // A value above 0 is always visible.
    var filled = Int(height.rounded())
    if sample.footprint > 0 { filled = max(1, filled) }
    return (0..<rows).map { levels[min(max(filled - $0 * full, 0), full)] }
  }

  private func hue(_ column: Int) -> Color {
    let (from, to) = span(column)
    return recording.state(at: (from + to) / 2).map(Color.ofState) ?? .cyan
  }

  // MARK: axes

  private func label(ofRow row: Int) -> String {
    let perStep = rows / Int(top / step)
    let bar = style.ascii ? ("+", "|") : ("┤", "│")
    // A step's label is beside the cell that ends at it.
    let isStep = (row + 1) % perStep == 0
    let text = isStep ? shortSizeText(step * Int64((row + 1) / perStep)) : ""
    return padded(text, to: labelWidth, alignsRight: true) + " " + (isStep ? bar.0 : bar.1)
  }

  private var timeAxis: [String] {
    let line: (start: Character, flat: Character, tick: Character) =
      style.ascii ? ("+", "-", "+") : ("└", "─", "┬")
    let every = RoundSteps.seconds(upTo: seconds, count: max(1, columns / 14))
    var axis = [Character](repeating: line.flat, count: columns)
    var numbers = [Character](repeating: " ", count: columns + labelWidth + 2)
    var free = 0
    for number in 0...Int(seconds / every + 1e-9) {
      let moment = Double(number) * every
      let column = column(at: moment)
      axis[column] = line.tick
      let text = Array(number == 0 ? "0" : momentText(moment, step: every))
      let start = labelWidth + 2 + column
      guard start >= free, start + text.count <= numbers.count else { continue }
      numbers.replaceSubrange(start..<start + text.count, with: text)
      free = start + text.count + 2
    }
    let zero = padded("0", to: labelWidth, alignsRight: true) + " \(line.start)"
    return [zero + String(axis), String(numbers).trimmed]
  }

  /// The line with the marks' symbols above their moments. nil if there are none.
  private var markLine: String? {
    var line = [Character](repeating: " ", count: columns)
    for mark in recording.marks {
      guard let symbol = mark.kind.symbol(ascii: style.ascii) else { continue }
      let column = column(at: mark.at)
      // A later mark doesn't hide a warning.
      if line[column] == " " || mark.kind == .warning { line[column] = symbol }
    }
    guard line.contains(where: { $0 != " " }) else { return nil }
    return String(repeating: " ", count: labelWidth + 2) + String(line).trimmed
  }
}

extension FootprintMark.Kind {
  /// The symbol of the mark's kind. nil: the mark is shown together with another one.
  func symbol(ascii: Bool) -> Character? {
    switch self {
    case .state: ascii ? "o" : "●"
    case .warning: ascii ? "v" : "▼"
    case .returned: nil
    case .shed, .purge: ascii ? "u" : "▽"
    case .failed, .jetsam: ascii ? "x" : "✗"
    case .pressure: ascii ? "~" : "≈"
    case .note: ascii ? "*" : "◆"
    case .lost: "?"
    }
  }
}

extension String {
  fileprivate var trimmed: String {
    var result = self
    while result.hasSuffix(" ") { result.removeLast() }
    return result
  }
}
