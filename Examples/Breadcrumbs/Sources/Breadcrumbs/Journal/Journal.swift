/// The entries, and the state that is restored after a termination, in one SQLite file.
///
/// Only one task may use it at a time: the application's actor owns it.
final class Journal {
  private let database: Database

  /// Opens the journal. If the file doesn't exist, it is created with the first entries.
  init(path: String) throws(SQLiteError) {
    database = try Database(path: path)
    // This is a tenth of the default, which is enough for ten entries.
    try database.run("PRAGMA cache_size = -200")
    try database.transaction { () throws(SQLiteError) in
      try database.run(
        "CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY, date TEXT NOT NULL, "
          + "place TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL)")
      try database.run(
        "CREATE TABLE IF NOT EXISTS drafts (entry INTEGER PRIMARY KEY, text TEXT NOT NULL)")
      try database.run("CREATE TABLE IF NOT EXISTS shown (what TEXT PRIMARY KEY, number INTEGER)")
      if try database.rows("SELECT count(*) FROM entries", read: { $0.integer(0) }) == [0] {
        for entry in Entry.first { try add(entry) }
      }
    }
  }

  private func add(_ entry: Entry) throws(SQLiteError) {
    try database.run(
      "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", .integer(entry.number), .text(entry.date),
      .text(entry.location), .text(entry.title), .text(entry.text))
  }

  private static func entry(_ row: borrowing Row) -> Entry {
    Entry(
      number: row.integer(0), date: row.text(1), location: row.text(2), title: row.text(3),
      text: row.text(4))
  }

  func entries() throws(SQLiteError) -> [Entry] {
    try database.rows(
      "SELECT number, date, place, title, text FROM entries ORDER BY number", read: Self.entry)
  }

  /// Returns an entry; `nil` if none has that number.
  func entry(_ number: Int) throws(SQLiteError) -> Entry? {
    try database.rows(
      "SELECT number, date, place, title, text FROM entries WHERE number = ?", .integer(number),
      read: Self.entry
    ).first
  }

  /// Ends an edit: the text becomes the entry's, and the draft is removed.
  func save(_ text: String, for number: Int) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      try database.run(
        "UPDATE entries SET text = ? WHERE number = ?", .text(text), .integer(number))
      try database.run("DELETE FROM drafts WHERE entry = ?", .integer(number))
    }
  }

  /// Frees the pages of the file that SQLite keeps in memory.
  func shrink() { database.shrink() }
}

/// The state that a user expects to find after a restart.
struct Restoration: Hashable, Sendable {
  /// The number of the entry on the screen.
  var shown: Int?
  /// The position of the slide show, from 1 on; `nil` if it doesn't run.
  var slide: Int?
  /// The edits in progress, by the number of the entry.
  var drafts: [Int: String] = [:]
}

extension Journal {
  func keep(_ restoration: Restoration) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      try database.run("DELETE FROM drafts")
      for (entry, text) in restoration.drafts {
        try database.run("INSERT INTO drafts VALUES (?, ?)", .integer(entry), .text(text))
      }
      try database.run("DELETE FROM shown")
      for (what, number) in [("entry", restoration.shown), ("slide", restoration.slide)] {
        guard let number else { continue }
        try database.run("INSERT INTO shown VALUES (?, ?)", .text(what), .integer(number))
      }
    }
  }

  func restoration() throws(SQLiteError) -> Restoration {
    func number(_ what: String) throws(SQLiteError) -> Int? {
      try database.rows(
        "SELECT number FROM shown WHERE what = ?", .text(what), read: { $0.integer(0) }
      ).first
    }
    let drafts = try database.rows(
      "SELECT entry, text FROM drafts", read: { ($0.integer(0), $0.text(1)) })
    return Restoration(
      shown: try number("entry"), slide: try number("slide"),
      drafts: Dictionary(drafts) { _, last in last })
  }
}
