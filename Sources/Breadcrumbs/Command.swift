/// What is wrong with a command, as a clause.
struct CommandError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A line that somebody has typed, or a request's path with spaces for slashes.
enum Command: Equatable {
  case nothing, help, entries, draft, saveEdit, discard, thumbnails, footprint, snapshot, warn, quit
  case show(Int)
  case edit(Int, String)
  case slideShow(SlideOrder)

  enum SlideOrder: String { case start, next, stop, leak }

  static let summary = """
    entries                    the list
    show N                     an entry, with its photo
    edit N TEXT                begin to change its text; nothing is saved yet
    draft | save | discard     the edit in progress
    slideshow start|next|stop  one photo after the other
    slideshow leak             and none of them is let go of
    thumbnails                 all photos, small
    footprint                  what this process takes
    warn                       what a memory warning does
    snapshot                   what is shown of it while it sleeps
    quit

    """

  init(_ line: String) throws(CommandError) {
    let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: true)
    guard let verb = words.first else {
      self = .nothing
      return
    }
    switch (verb, words.count) {
    case ("help", 1): self = .help
    case ("entries", 1): self = .entries
    case ("draft", 1): self = .draft
    case ("save", 1): self = .saveEdit
    case ("discard", 1): self = .discard
    case ("thumbnails", 1): self = .thumbnails
    case ("footprint", 1): self = .footprint
    case ("snapshot", 1): self = .snapshot
    case ("warn", 1): self = .warn
    case ("quit", 1): self = .quit
    case ("show", 2): self = .show(try Self.number(words[1]))
    case ("edit", 3): self = .edit(try Self.number(words[1]), String(words[2]))
    case ("slideshow", 2):
      guard let order = SlideOrder(rawValue: String(words[1])) else {
        throw CommandError("slideshow: start, next, stop or leak")
      }
      self = .slideShow(order)
    default: throw CommandError("what is `\(line)`? `help` lists the commands")
    }
  }

  private static func number(_ word: Substring) throws(CommandError) -> Int {
    guard let number = Int(word), number > 0 else {
      throw CommandError("`\(word)` is no entry's number")
    }
    return number
  }
}
