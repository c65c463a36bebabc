/// Returns the text of the error that `body` threw; nil: it threw none.
func failureText(_ body: () throws -> Void) -> String? {
  do {
    try body()
    return nil
  } catch { return "\(error)" }
}
