import WorkerKit

/// The daemon's messages. WorkerKit empties caches and `@Unloadable` values itself; this extension
/// does what only this program can do.
extension App: WorkerDelegate {
  func didEnterBackground() { keepOrSay() }

  func didReceiveMemoryWarning(_ warning: MemoryWarning) {
    // By now hidden screens keep only their edits. SQLite still has pages of the file.
    journal.shrink()
  }

  /// Saves the state from which the next run continues.
  func willTerminate(reason: String) { keepOrSay() }

  private func keepOrSay() {
    do {
      try keep()
      journal.shrink()
    } catch { say("\(error)") }
  }

  /// Writes the state that can't be made again to disk.
  func keep() throws(SQLiteError) {
    try journal.keep(
      Restoration(
        shown: shown, slide: slides.position,
        drafts: screens.compactMapValues(\.draft)))
  }

  /// The text that is shown while the program sleeps.
  func snapshot() throws(SQLiteError) -> String {
    var lines: [String] = []
    if let shown, let entry = try journal.entry(shown) {
      lines.append("\(entry.number). \(entry.title)")
      if let draft = screens[shown]?.draft { lines.append("an edit in progress: \(draft)") }
    } else {
      lines.append("Breadcrumbs, \(try journal.entries().count) entries")
    }
    if let slide = slides.position { lines.append("slide \(slide) of \(album.count)") }
    return lines.joined(separator: "\n")
  }

  func footprint() -> String {
    let now = Footprint.current()
    let screen = shown.flatMap { screens[$0] }
    return """
      footprint: \(megabytes(Int(now.total))), of it purgeable and shared \
      \(megabytes(Int(now.sharedMemory)))
      the photo on the screen: \(screen?.$photo.isLoaded == true ? "decoded" : "not decoded")
      thumbnails: \(thumbnails.statistics.count), \(megabytes(thumbnails.statistics.cost))
      slides: \(slides.statistics.count), \(megabytes(slides.statistics.cost))
      leaked: \(slides.leaked.count), \(megabytes(slides.leaked.reduce(0) { $0 + $1.byteCount }))
      """
  }
}
