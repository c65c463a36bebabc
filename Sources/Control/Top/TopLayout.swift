/// The positions of the list and the pane of `top`. The pane shows details of the selected worker,
/// or of the machine.
package struct TopLayout: Hashable {
  package enum Position: Hashable {
    case none, below, beside, whole
  }

  package var position = Position.none
  /// The width of the list in columns.
  package var listColumns: Int
  /// The number of workers in the list; 0 if it isn't shown. If the pane below it needs fewer
  /// lines, the list gets more.
  package var listRows: Int
  package var paneColumns = 0
  /// The maximum number of lines of the pane, with its title.
  package var paneRows = 0

  /// The number of lines above the workers: one for their number and order, and one for the titles
  /// of the columns.
  package static let heading = 2
  /// The minimum width for a pane beside the list. On a narrower screen it is below.
  package static let minColumnsBeside = 120
  /// The columns between the list and a pane beside it.
  package static let border = 2

  /// - Parameters:
  ///   - rows: the number of rows that the lines above and below leave.
  ///   - hasPane: whether there is something to show in a pane.
  ///   - isWhole: whether the pane is shown without the list.
  package init(
    columns: Int, rows: Int, workers: Int, hasPane: Bool, isWhole: Bool = false
  ) {
    let room = rows - Self.heading
    listColumns = columns
    listRows = max(room, 1)
    guard hasPane else { return }
    if isWhole {
      (position, listRows, paneColumns, paneRows) = (.whole, 0, columns, max(rows, 1))
    } else if columns >= Self.minColumnsBeside {
      position = .beside
      listColumns = max(TopModel.minColumns, columns * 2 / 5)
      (paneColumns, paneRows) = (columns - listColumns - Self.border, max(rows, 1))
    } else {
      // The list gets half of the rows if there are enough workers.
      let minListRows = min(max(workers, 1), max(room / 2, 2))
      guard room - minListRows >= 2 else { return }
      (position, listRows, paneColumns, paneRows) = (
        .below, minListRows, columns, room - minListRows
      )
    }
  }
}
