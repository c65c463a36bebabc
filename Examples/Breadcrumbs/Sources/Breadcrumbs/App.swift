import WorkerKit

/// The result of a command.
enum Reply: Hashable, Sendable {
  case done(String)
  /// The command can't be done in the current state.
  case refused(String)
  /// The entry or photo doesn't exist.
  case missing(String)
  /// An error of the machine or its disk.
  case failed(String)
}

/// The application: its screens and its commands. Its life cycle is in `App+Life`.
actor App {
  let album: Album
  let journal: Journal
  let thumbnails: Thumbnails
  var slides: SlideShow
  /// The screen that is shown, and those with an edit in progress.
  var screens: [Int: EntryScreen] = [:]
  var shown: Int?

  /// Restores the screen of the last run.
  ///
  /// - Parameter isBroken: True if the slide show leaks, as in the talk.
  init(album: Album, journal: sending Journal, isBroken: Bool) throws(SQLiteError) {
    let before = try journal.restoration()
    self.album = album
    self.journal = journal
    thumbnails = Thumbnails(album: album)
    slides = SlideShow(album: album, position: before.slide, isLeaking: isBroken)
    shown = before.shown
    for (number, draft) in before.drafts {
      screens[number] = EntryScreen(number, draft: draft, album: album)
    }
  }

  func perform(_ command: Command) async -> Reply {
    do {
      switch command {
      case .entries: return .done(try list())
      case .show(let number): return try show(number ?? shown)
      case .edit(let number, let text): return try edit(number, text)
      case .save: return try await save()
      case .discard: return discard()
      case .startSlides: return .done(try slideLine(slides.start()))
      case .nextSlide(let times): return try await next(times)
      case .stopSlides:
        slides.stop()
        return .done("the slide show has stopped")
      case .leak:
        slides.isLeaking = true
        return .done("from now on each step keeps its photo")
      case .thumbnails: return .done(try thumbnailLines())
      case .footprint: return .done(footprint())
      case .snapshot: return .done(try snapshot())
      case .help: return .done(Command.usage)
      case .quit:
        try keep()
        return .done("bye")
      }
    } catch { return .failed("\(error)") }
  }

  // MARK: entries

  private func list() throws(SQLiteError) -> String {
    try journal.entries().map { entry in
      let mark = screens[entry.number]?.draft == nil ? "" : " (an edit in progress)"
      return "\(entry.number). \(entry.date) \(entry.location): \(entry.title)\(mark)"
    }.joined(separator: "\n")
  }

  private func show(_ number: Int?) throws(SQLiteError) -> Reply {
    guard let number else { return .refused("no entry is on the screen; `show N`") }
    guard let entry = try journal.entry(number) else {
      return .missing("there is no entry \(number)")
    }
    return .done(open(number).text(of: entry))
  }

  private func open(_ number: Int) -> EntryScreen {
    if let last = shown, last != number, let screen = screens[last] {
      screen.leave()
      if screen.draft == nil { screens[last] = nil }
    }
    shown = number
    let screen = screens[number] ?? EntryScreen(number, album: album)
    screens[number] = screen
    return screen
  }

  private func edit(_ number: Int, _ text: String) throws(SQLiteError) -> Reply {
    guard try journal.entry(number) != nil else { return .missing("there is no entry \(number)") }
    open(number).draft = text
    return .done("entry \(number): an edit in progress; `save` keeps it")
  }

  private func save() async throws(SQLiteError) -> Reply {
    guard let number = shown, let screen = screens[number], let text = screen.draft else {
      return .refused("no edit is in progress here")
    }
    // A save that has begun is finished, even if the worker enters the background meanwhile.
    try await withBackgroundTask(named: "save entry \(number)") { () async throws(SQLiteError) in
      try await self.write(text, for: number)
    }
    return .done("entry \(number) is saved")
  }

  private func write(_ text: String, for number: Int) throws(SQLiteError) {
    try journal.save(text, for: number)
    // A draft that was edited further meanwhile stays.
    if screens[number]?.draft == text { screens[number]?.draft = nil }
  }

  private func discard() -> Reply {
    guard let number = shown, let screen = screens[number], screen.draft != nil else {
      return .refused("no edit is in progress here")
    }
    screen.draft = nil
    return .done("entry \(number) is as it was")
  }

  // MARK: photos

  private func next(_ times: Int) async throws(PhotoError) -> Reply {
    guard slides.position != nil else { return .refused("no slide show runs; `slideshow start`") }
    var bitmap: Bitmap?
    for _ in 0..<times {
      bitmap = nil
      bitmap = try slides.next()
      // Warnings and other clients' commands may run here.
      await Task.yield()
    }
    guard let bitmap else { return .refused("the slide show was stopped") }
    return .done(slideLine(bitmap))
  }

  private func slideLine(_ bitmap: Bitmap) -> String {
    "slide \(slides.position ?? 0) of \(album.count), \(bitmap.digest)"
  }

  private func thumbnailLines() throws(PhotoError) -> String {
    var lines: [String] = []
    for number in 1...album.count { lines.append("\(number). \(try thumbnails.digest(number))") }
    return lines.joined(separator: "\n")
  }
}
