#include <sqlite3.h>

/// SQLITE_TRANSIENT is a pointer made of -1, which Swift can't import.
static inline int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text,
                                    int length) {
  return sqlite3_bind_text(statement, index, text, length, SQLITE_TRANSIENT);
}
