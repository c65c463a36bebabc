import CSQLite

/// A failed operation, with SQLite's message.
struct SQLiteError: Error, Hashable, CustomStringConvertible {
  let operation: String
  /// A code of sqlite3.h.
  let code: Int32
  let message: String

  var description: String { "SQLite, \(operation): \(message) (\(code))" }
}

/// A value for a parameter (`?`) of a statement.
enum SQLValue: Hashable {
  case integer(Int)
  case text(String)
  case null
}

extension SQLValue: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral {
  init(integerLiteral value: Int) { self = .integer(value) }
  init(stringLiteral value: String) { self = .text(value) }
}

/// One connection to a database file. Only one task may use it at a time. It keeps no prepared
/// statements, and so no lock on the file between calls: a worker that holds a lock isn't at a safe
/// point.
final class Database {
  private let connection: OpaquePointer

  /// Opens the file, and creates it if it doesn't exist.
  init(path: String) throws(SQLiteError) {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard let opened, code == SQLITE_OK else {
      let message = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
      sqlite3_close_v2(opened)
      throw SQLiteError(operation: "opening \(path)", code: code, message: message)
    }
    connection = opened
    sqlite3_busy_timeout(connection, 2000)
  }

  deinit { sqlite3_close_v2(connection) }

  /// Runs one statement and returns its rows.
  @discardableResult
  func rows<Value>(
    _ sql: String, _ values: SQLValue..., read: (borrowing Row) -> Value
  ) throws(SQLiteError) -> [Value] {
    let statement = try Statement(sql, on: connection)
    try statement.bind(values)
    var result: [Value] = []
    while try statement.step() { result.append(read(Row(statement: statement.raw))) }
    return result
  }

  /// Runs one statement and ignores its rows.
  func run(_ sql: String, _ values: SQLValue...) throws(SQLiteError) {
    let statement = try Statement(sql, on: connection)
    try statement.bind(values)
    while try statement.step() {}
  }

  /// Applies all of `body`, or nothing if that throws.
  func transaction(_ body: () throws(SQLiteError) -> Void) throws(SQLiteError) {
    try run("BEGIN IMMEDIATE")
    do {
      try body()
      try run("COMMIT")
    } catch {
      // The transaction may have been rolled back already; the first error is the one to report.
      try? run("ROLLBACK")
      throw error
    }
  }

  /// Frees the pages of the file that SQLite keeps in memory. SQLite reads them again when needed.
  func shrink() { sqlite3_db_release_memory(connection) }
}

/// A row, while it is the current one of its statement. Columns count from 0.
struct Row: ~Copyable {
  fileprivate let statement: OpaquePointer

  func integer(_ column: Int32) -> Int { Int(sqlite3_column_int64(statement, column)) }

  /// The text of a column; empty if the column is null.
  func text(_ column: Int32) -> String {
    sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
  }
}

/// A prepared statement. It ends with its scope.
private struct Statement: ~Copyable {
  let raw: OpaquePointer
  private let connection: OpaquePointer

  init(_ sql: String, on connection: OpaquePointer) throws(SQLiteError) {
    var prepared: OpaquePointer?
    let code = sqlite3_prepare_v2(connection, sql, -1, &prepared, nil)
    guard let prepared else {
      let message = String(cString: sqlite3_errmsg(connection))
      throw SQLiteError(operation: "preparing `\(sql)`", code: code, message: message)
    }
    raw = prepared
    self.connection = connection
  }

  deinit { sqlite3_finalize(raw) }

  func bind(_ values: [SQLValue]) throws(SQLiteError) {
    for (offset, value) in values.enumerated() {
      let index = Int32(offset) + 1
      let code =
        switch value {
        case .integer(let number): sqlite3_bind_int64(raw, index, Int64(number))
        case .text(let text): csqlite_bind_text(raw, index, text, Int32(text.utf8.count))
        case .null: sqlite3_bind_null(raw, index)
        }
      if code != SQLITE_OK { throw error("binding", code) }
    }
  }

  /// Moves to the next row, and returns whether there is one.
  func step() throws(SQLiteError) -> Bool {
    switch sqlite3_step(raw) {
    case SQLITE_ROW: true
    case SQLITE_DONE: false
    case let code: throw error("running", code)
    }
  }

  private func error(_ what: String, _ code: Int32) -> SQLiteError {
    let sql = String(cString: sqlite3_sql(raw))
    return SQLiteError(
      operation: "\(what) `\(sql)`", code: code,
      message: String(cString: sqlite3_errmsg(connection)))
  }
}
