import Foundation
import Testing

@Suite("The check of commit messages") struct CommitMessageTests {
  @Test(
    "A message passes if its subject is short and in the imperative, and a blank line follows",
    arguments: [
      ("Close the socket before the answer\n\nThe client waited for it.\n", nil),
      ("Close the socket\n# Please enter the commit message\n", nil),
      ("Address the review\n\nhttps://example.org/\(String(repeating: "x", count: 100))\n", nil),
      ("\n# only comments\n", "is empty"),
      ("Close \(String(repeating: "x", count: 67))\n", "has 73 characters"),
      ("Close the socket.\n", "full stop"),
      ("close the socket\n", "capital letter"),
      ("Fixed the socket\n", "imperative"),
      ("Adds a socket\n", "imperative"),
      ("Renaming a socket\n", "imperative"),
      ("Close the socket\nat once\n", "second line"),
      ("Merge branch 'main' of /home/me/dormouse\n", "directory"),
      ("Close it\n\n\(String(repeating: "word ", count: 21))\n", "more than 100 columns"),
    ] as [(String, String?)])
  func messages(message: String, complaint: String?) throws {
    let file = FileManager.default.temporaryDirectory
      .appending(path: "dormouse-message-\(UUID().uuidString)")
    try message.write(to: file, atomically: false, encoding: .utf8)
    defer { unlink(file.path()) }
    let process = Process()
    process.executableURL = Repository.root.appending(path: "scripts/hooks/commit-msg")
    process.arguments = [file.path()]
    let output = Pipe()
    process.standardError = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == (complaint == nil ? 0 : 65), "\(text)")
    #expect(complaint == nil ? text.isEmpty : text.contains(complaint ?? ""), "\(text)")
  }
}
