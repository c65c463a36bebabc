import WorkerKit

/// An entry as it is shown. The view controller's rule: what is drawn can be drawn again, and goes when
/// memory is short; what a person has typed can't, and stays.
final class EntryScreen {
  let entry: Entry
  /// An edit in progress: irreplaceable.
  var draft: String?

  /// 12 MB of pixels for one screen; from a JPEG that takes a fiftieth of that.
  @Unloadable private var photo: Result<Bitmap, JPEGError>
  @Unloadable private var layout: String

  init(_ entry: Entry, _ album: Album, draft: String?) {
    self.entry = entry
    self.draft = draft
    let id = entry.id
    _photo = Unloadable { Result { () throws(JPEGError) in try album.photo(of: id) } }
    _layout = Unloadable { entry.text.wrapped(at: 72) }
  }

  /// The same whenever it is asked for, whatever has been unloaded meanwhile.
  var text: String {
    get throws {
      let picture = try photo.get().told
      let edit = draft.map { "\n* an edit in progress: \($0)\n" } ?? ""
      return "\(entry.line)\n\n\(layout)\n\n[\(picture)]\n\(edit)"
    }
  }
}

extension String {
  /// Lines of at most that many characters, where there are spaces to break them at.
  func wrapped(at width: Int) -> String {
    var lines: [String] = []
    var line = ""
    for word in split(separator: " ") {
      if !line.isEmpty, line.count + word.count >= width {
        lines.append(line)
        line = ""
      }
      line += (line.isEmpty ? "" : " ") + word
    }
    return (lines + [line]).joined(separator: "\n")
  }
}
