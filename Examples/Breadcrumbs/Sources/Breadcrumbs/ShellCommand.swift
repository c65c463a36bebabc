/// A command: a line at stdin, or the path of an HTTP request.
enum Command: Hashable, Sendable {
  case entries
  /// Shows an entry; `nil` means what is on the screen.
  case show(Int?)
  case edit(Int, String)
  case save
  case discard
  case startSlides
  case nextSlide(times: Int)
  case stopSlides
  case leak
  case thumbnails
  case footprint
  case snapshot
  case help
  case quit

  /// True if the command changes more than what is on the screen.
  var isChange: Bool {
    switch self {
    case .entries, .show, .thumbnails, .footprint, .snapshot, .help: false
    case .edit, .save, .discard, .startSlides, .nextSlide, .stopSlides, .leak, .quit: true
    }
  }

  static let usage = """
    entries                 all of them, a line each
    show [N]                entry N, or the one on the screen
    edit N TEXT             begins or continues an edit of entry N
    save, discard           ends the edit of the entry on the screen
    slideshow start         shows the first photo
    slideshow next [COUNT]  shows the next photo, or the next COUNT
    slideshow stop
    slideshow leak          from now on every step keeps its photo, as in the talk
    thumbnails              a small picture of each entry
    footprint               what this program takes of the machine's memory
    snapshot                what is shown of it while it sleeps
    help, quit
    """

  /// Reads a line. Words may be separated by any number of blanks; the text of an edit stays as it
  /// is.
  init(line: String) throws(CommandError) {
    var remainder = line[...]
    func word() -> String {
      remainder = remainder.drop { $0 == " " || $0 == "\t" }
      let word = remainder.prefix { $0 != " " && $0 != "\t" }
      remainder = remainder.dropFirst(word.count)
      return String(word)
    }
    let name = word()
    switch name {
    case "show": self = .show(try Self.optionalNumber(word()))
    case "edit":
      guard let number = try Self.optionalNumber(word()) else { throw .incomplete("edit N TEXT") }
      let text = remainder.drop { $0 == " " || $0 == "\t" }
      guard !text.isEmpty else { throw .incomplete("edit N TEXT") }
      self = .edit(number, String(text))
      return
    case "slideshow": self = try Self.slideShow(word(), word())
    default:
      guard let command = Self.plain[name] else { throw .unknown(name) }
      self = command
    }
    let surplus = word()
    guard surplus.isEmpty else { throw .surplus(surplus) }
  }

  private static let plain: [String: Command] = [
    "entries": .entries, "save": .save, "discard": .discard, "thumbnails": .thumbnails,
    "footprint": .footprint, "snapshot": .snapshot, "help": .help, "quit": .quit,
  ]

  private static func slideShow(_ verb: String, _ count: String) throws(CommandError) -> Command {
    if verb == "next" { return .nextSlide(times: try optionalNumber(count) ?? 1) }
    guard count.isEmpty else { throw .surplus(count) }
    switch verb {
    case "start": return .startSlides
    case "stop": return .stopSlides
    case "leak": return .leak
    case "": throw .incomplete("slideshow start|next|stop|leak")
    default: throw .unknown("slideshow \(verb)")
    }
  }

  private static func optionalNumber(_ word: String) throws(CommandError) -> Int? {
    if word.isEmpty { return nil }
    guard let number = Int(word), (1...1_000_000).contains(number) else {
      throw .notANumber(word)
    }
    return number
  }
}

/// The reason why a line isn't a command.
enum CommandError: Error, Hashable, CustomStringConvertible {
  case unknown(String)
  case incomplete(String)
  case surplus(String)
  case notANumber(String)

  var description: String {
    switch self {
    case .unknown(let name): "there is no `\(name)`; `help` lists what there is"
    case .incomplete(let usage): "usage: \(usage)"
    case .surplus(let word): "`\(word)` is too much"
    case .notANumber(let word): "`\(word)` isn't a number of 1 or more"
    }
  }
}
