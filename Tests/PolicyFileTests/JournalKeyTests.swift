import Policy
import Testing

@testable import PolicyFile

@Suite struct `The journal's keys` {
  @Test func `The journal's keys have defaults, and are read as they are written`() throws {
    #expect(configuration("").value?.journal == JournalConfiguration())
    let text = "journal: { enabled: false, path: /var/log/dormouse, size: 1.5MB, keep: 3 }"
    let result = configuration(text)
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    #expect(
      result.value?.journal
        == JournalConfiguration(
          enabled: false, path: "/var/log/dormouse", size: .kilobytes(1536), keep: 3))
  }

  @Test(arguments: [
    "size: 1KB", "size: 2GB", "size: 8", "keep: 0", "keep: many", "enabled: perhaps", "path: ''",
    "path: ~/journal", "rotate: true",
  ]) func `A wrong value of a journal's key is refused`(key: String) {
    #expect(configuration("journal: { \(key) }").value == nil)
  }
}
