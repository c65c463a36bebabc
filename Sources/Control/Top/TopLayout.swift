/// Where `top` shows its list, and its pane: what is shown of the selected worker, or of the machine.
package struct TopLayout: Hashable {
  package enum Place: Hashable {
    case none, below, beside, whole
  }

  package var place = Place.none
  /// Columns of the list.
  package var listColumns: Int
  /// Workers in the list; 0: it isn't shown. A pane below it that has fewer lines leaves it more.
  package var listRows: Int
  package var paneColumns = 0
  /// At most, its title included.
  package var paneRows = 0

  /// Above the workers: which of them are shown, and the columns' titles.
  package static let heading = 2
  /// A narrower screen has the pane below the list.
  package static let leastBeside = 120
  /// Between the list and a pane beside it.
  package static let border = 2

  /// - Parameters:
  ///   - rows: what the lines above and below leave.
  ///   - hasPane: there is something to show in it.
  ///   - isWhole: the pane is wanted without the list.
  package init(
    columns: Int, rows: Int, workers: Int, hasPane: Bool, isWhole: Bool = false
  ) {
    let room = rows - Self.heading
    listColumns = columns
    listRows = max(room, 1)
    guard hasPane else { return }
    if isWhole {
      (place, listRows, paneColumns, paneRows) = (.whole, 0, columns, max(rows, 1))
    } else if columns >= Self.leastBeside {
      place = .beside
      listColumns = max(TopModel.leastColumns, columns * 2 / 5)
      (paneColumns, paneRows) = (columns - listColumns - Self.border, max(rows, 1))
    } else {
      // Half of the room is the list's, if there are as many workers.
      let least = min(max(workers, 1), max(room / 2, 2))
      guard room - least >= 2 else { return }
      (place, listRows, paneColumns, paneRows) = (.below, least, columns, room - least)
    }
  }
}
