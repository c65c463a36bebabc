import WorkerKit

/// All that the program knows and does. It is the worker's delegate: what the daemon wants is done
/// between two commands, never in the middle of one.
actor Journal: WorkerDelegate {
  private let store: Store
  private let album: Album
  private let isBroken: Bool
  /// What is shown; `nil`: the list.
  private var screen: EntryScreen?
  private var slideShow = SlideShow()

  init(directory: String, isBroken: Bool) throws {
    store = try Store(path: "\(directory)/breadcrumbs.sqlite")
    album = Album(directory: directory)
    self.isBroken = isBroken
  }

  // MARK: being a good citizen

  func didEnterBackground() async {
    await save()
    slideShow.forgetShown()
    store.shrink()
    Worker.shared.setSnapshot(.text(snapshot))
  }

  /// Caches and `Unloadable` values see to themselves; this is what only we know of.
  func didReceiveMemoryWarning(_ warning: MemoryWarning) async {
    slideShow.forgetShown()
    store.shrink()
  }

  func willTerminate(reason: String) async { await save() }

  /// What was on the screen, the place in the slide show, and the edit in progress: what a person
  /// would miss. Photos and layouts can be made again.
  func save() async {
    let state = RestorableState(
      shown: screen?.entry.id, slide: slideShow.place, draft: screen?.draft)
    await withBackgroundTask(named: "saving the journal", limit: .seconds(5)) { [store] in
      do throws(SQLiteError) { try store.save(state) } catch { complain("\(error)") }
    }
  }

  func restore() {
    do {
      let state = try store.restorableState()
      slideShow.place = state.slide
      guard let id = state.shown, let entry = try store.entry(id) else { return }
      screen = EntryScreen(entry, album, draft: state.draft)
    } catch { complain("nothing restored: \(error)") }
  }

  private var snapshot: String {
    guard let screen else { return "the list of entries" }
    let edit = screen.draft == nil ? "" : ", with an edit in progress"
    return "entry \(screen.entry.id), \(screen.entry.title)\(edit)"
  }

  // MARK: commands

  /// The answer to a line, with its line ends.
  func perform(_ line: String) async -> String {
    do {
      switch try Command(line) {
      case .nothing: return ""
      case .help: return Command.summary
      case .entries: return try store.entries().map { $0.line + "\n" }.joined()
      case .show(let id): return try show(id)
      case .edit(let id, let text): return try edit(id, text)
      case .draft: return screen?.draft.map { $0 + "\n" } ?? "no edit in progress\n"
      case .saveEdit: return try saveEdit()
      case .discard:
        screen?.draft = nil
        return "discarded\n"
      case .slideShow(let order): return try perform(order)
      case .thumbnails: return try thumbnails()
      case .footprint: return footprint()
      case .snapshot: return snapshot + "\n"
      case .warn: return await warn()
      case .quit: return "goodbye\n"
      }
    } catch { return "error: \(error)\n" }
  }

  private func show(_ id: Int) throws -> String {
    if screen?.entry.id != id {
      guard let entry = try store.entry(id) else { throw CommandError("there is no entry \(id)") }
      // An edit that is left is kept with its entry's screen, and there is one screen.
      guard screen?.draft == nil else {
        throw CommandError("an edit of entry \(screen?.entry.id ?? 0) is in progress")
      }
      screen = EntryScreen(entry, album, draft: nil)
    }
    guard let screen else { return "" }
    return try screen.text
  }

  private func edit(_ id: Int, _ text: String) throws -> String {
    _ = try show(id)
    screen?.draft = text
    return "editing entry \(id): \(text.utf8.count) bytes not saved\n"
  }

  private func saveEdit() throws -> String {
    guard let screen, let draft = screen.draft else { throw CommandError("no edit in progress") }
    try store.setText(draft, of: screen.entry.id)
    guard let entry = try store.entry(screen.entry.id) else { return "" }
    self.screen = EntryScreen(entry, album, draft: nil)
    return "saved entry \(entry.id)\n"
  }

  private func perform(_ order: Command.SlideOrder) throws -> String {
    switch order {
    case .leak:
      slideShow.leaks = true
      return "the slide show keeps each picture that it has shown\n"
    case .stop:
      slideShow.stop()
      return "the slide show has ended\n"
    case .start: slideShow.begin()
    case .next: slideShow.advance(of: try store.count())
    }
    guard let place = slideShow.place else { throw CommandError("no slide show is running") }
    guard let entry = try store.entry(place) else {
      throw CommandError("there is no slide \(place)")
    }
    let bitmap = try album.photo(of: entry.id)
    // The broken one keeps them whatever it is told.
    slideShow.show(bitmap, keeps: slideShow.leaks || isBroken)
    return "slide \(place): \(entry.title); \(bitmap.told); \(slideShow.held) held\n"
  }

  private func thumbnails() throws -> String {
    let lines = try store.entries().map { entry in
      "\(entry.id)  \(try album.thumbnail(of: entry.id).told)\n"
    }
    return lines.joined()
  }

  private func footprint() -> String {
    let now = Footprint.current()
    return "\(megabytes(now.total)): \(megabytes(now.anonymous)) of its own, "
      + "\(megabytes(now.sharedMemory)) shared; \(album.thumbnailCount) thumbnails, "
      + "\(slideShow.held) slides held\n"
  }

  /// What the daemon's `dormouse warn` does, without a daemon.
  private func warn() async -> String {
    let (before, after) = await Worker.shared.simulateMemoryWarning()
    return "from \(megabytes(before.total)) to \(megabytes(after.total))\n"
  }
}
