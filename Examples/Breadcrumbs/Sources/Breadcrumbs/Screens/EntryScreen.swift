import WorkerKit

/// One entry on the screen. What it *shows* can be made again from what it *knows*, and only the latter
/// must survive: the rule of a view controller and its view.
final class EntryScreen {
  let number: Int

  /// The edit in progress. Nobody else has it, so nothing here may let go of it.
  var draft: String?

  /// Decoded, 7.3 MB: it goes on a warning, and comes again when somebody looks.
  @Unloadable var photo: Result<Bitmap, PhotoError>
  /// What a terminal shows of the photo.
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

  /// It isn't on the screen any more.
  func leave() {
    $photo.unload()
    $print.unload()
  }

  /// - Parameter entry: as it is saved.
  func text(of entry: Entry) -> String {
    var lines = ["\(entry.number). \(entry.title)", "\(entry.date), \(entry.place)", ""]
    lines.append(draft ?? entry.text)
    if draft != nil { lines.append("(an edit in progress, not saved)") }
    return lines.joined(separator: "\n") + "\n\n" + print
  }
}
