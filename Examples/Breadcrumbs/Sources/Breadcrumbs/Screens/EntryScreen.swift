import WorkerKit

/// One entry on the screen. What it *shows* can be made again from what it *knows*, and only the
/// latter must survive: the rule of a view controller and its view.
final class EntryScreen {
  let number: Int

  /// The edit in progress. This is its only copy, so it must not be unloaded.
  var draft: String?

  /// The decoded photo, 7.3 MB. A warning unloads it, and the next use decodes it again.
  @Unloadable var photo: Result<Bitmap, PhotoError>
  /// The photo as a terminal shows it.
  @Unloadable var print: String

  init(_ number: Int, draft: String? = nil, album: Album) {
    self.number = number
    self.draft = draft
    let photo = Unloadable {
      Result { () throws(PhotoError) in try album.photo(number) }
    }
    _photo = photo
    _print = Unloadable { photo.use { ContactPrint.text(of: $0) } }
  }

  /// Unloads the photo when another screen is shown.
  func leave() {
    $photo.unload()
    $print.unload()
  }

  /// - Parameter entry: The saved entry.
  func text(of entry: Entry) -> String {
    var lines = ["\(entry.number). \(entry.title)", "\(entry.date), \(entry.location)", ""]
    lines.append(draft ?? entry.text)
    if draft != nil { lines.append("(an edit in progress, not saved)") }
    return lines.joined(separator: "\n") + "\n\n" + print
  }
}
