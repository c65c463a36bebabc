/// Why `body` failed; nil: it didn't.
func failureText(_ body: () throws -> Void) -> String? {
  do {
    try body()
    return nil
  } catch { return "\(error)" }
}
