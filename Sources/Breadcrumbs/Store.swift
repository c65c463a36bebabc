/// One place, one day.
struct Entry: Sendable {
  var id: Int
  var date: String
  var title: String
  var text: String

  var line: String { "\(id < 10 ? " " : "")\(id)  \(date)  \(title)" }
}

/// What brings a person back to where they were, when the process is another one.
struct RestorableState: Sendable {
  var shown: Int?
  var slide: Int?
  var draft: String?
}

/// The journal's file. Entries are read when they are wanted, and not kept.
///
/// @unchecked Sendable: the connection is used by the journal's actor, and by the background task for
/// which that actor waits; never by two at a time.
final class Store: @unchecked Sendable {
  private let database: Database

  init(path: String) throws(SQLiteError) {
    database = try Database(path: path)
    try database.run(
      """
      CREATE TABLE IF NOT EXISTS entries
      (id INTEGER PRIMARY KEY, date TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL)
      """)
    try database.run("CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    if try count() == 0 { try fill() }
  }

  private func fill() throws(SQLiteError) {
    let database = database
    try database.transaction { () throws(SQLiteError) in
      for (index, page) in Journey.pages.enumerated() {
        try database.run(
          "INSERT INTO entries VALUES (?, ?, ?, ?)", .integer(index + 1), .text(page.date),
          .text(page.title), .text(page.text))
      }
    }
  }

  func count() throws(SQLiteError) -> Int {
    try database.rows("SELECT count(*) FROM entries") { $0.integer(0) }.first ?? 0
  }

  func entries() throws(SQLiteError) -> [Entry] {
    try database.rows("SELECT id, date, title, text FROM entries ORDER BY id", read: Self.entry)
  }

  func entry(_ id: Int) throws(SQLiteError) -> Entry? {
    try database.rows(
      "SELECT id, date, title, text FROM entries WHERE id = ?", .integer(id), read: Self.entry
    ).first
  }

  private static func entry(_ row: borrowing Row) -> Entry {
    Entry(id: row.integer(0), date: row.text(1), title: row.text(2), text: row.text(3))
  }

  func setText(_ text: String, of id: Int) throws(SQLiteError) {
    try database.run("UPDATE entries SET text = ? WHERE id = ?", .text(text), .integer(id))
  }

  func save(_ state: RestorableState) throws(SQLiteError) {
    let database = database
    let values = [
      ("shown", state.shown.map(String.init)), ("slide", state.slide.map(String.init)),
      ("draft", state.draft),
    ]
    try database.transaction { () throws(SQLiteError) in
      try database.run("DELETE FROM state")
      for case (let key, let value?) in values {
        try database.run("INSERT INTO state VALUES (?, ?)", .text(key), .text(value))
      }
    }
  }

  func restorableState() throws(SQLiteError) -> RestorableState {
    let rows = try database.rows("SELECT key, value FROM state") { ($0.text(0), $0.text(1)) }
    let values = Dictionary(rows) { first, _ in first }
    return RestorableState(
      shown: values["shown"].flatMap(Int.init), slide: values["slide"].flatMap(Int.init),
      draft: values["draft"])
  }

  func shrink() { database.shrink() }
}
