import Control
import Simulation

extension FleetComparison {
  /// The table for a terminal of `width` columns (nil: no limit), or as Markdown.
  func rendered(asMarkdown: Bool = false, width: Int? = nil) -> String {
    let cells = asMarkdown ? markdown : table.folded(width: width, color: false)
    let legend = wrapped(Self.legend, to: min(width ?? .max, 95))
    let lines = about.flatMap { wrapped($0, to: width) } + [""] + cells + [""] + legend
    return lines.joined(separator: "\n") + "\n"
  }

  private var table: Table {
    let columns = Self.titles.map { Table.Column(title: $0, alignsRight: $0 != Self.titles[0]) }
    return Table(columns: columns, rows: rows.map { row in row.map { Table.Cell($0) } })
  }

  private var markdown: [String] {
    let lines = ([Self.titles] + rows).map { "| " + $0.joined(separator: " | ") + " |" }
    let rule = "|---|" + String(repeating: "---:|", count: Self.titles.count - 1)
    return [lines[0], rule] + lines.dropFirst()
  }
}
