import Foundation
import TestSupport
import Testing

/// docs/ARCHITECTURE.md leads through the code by file and function.
@Suite("The walks through the code") struct WalkTests {
  private static func steps() throws -> [(file: String, function: String)] {
    let text = try String(
      contentsOfFile: SourceTree.root + "/docs/ARCHITECTURE.md", encoding: .utf8)
    return text.split(separator: "\n").compactMap { line in
      let match = line.firstMatch(of: /^\| \d+ \| `(\w+\.swift)` \| `(\w+)` \|/)
      return match.map { (String($0.1), String($0.2)) }
    }
  }

  @Test("Every step of the walks in ARCHITECTURE.md names one existing file and a function in it")
  func steps() throws {
    let steps = try Self.steps()
    #expect(steps.count > 30 && steps.count <= 60)
    for step in steps {
      let files = Repository.files.filter {
        $0.path.hasPrefix("Sources/") && $0.path.hasSuffix("/" + step.file)
      }
      #expect(files.count == 1, "\(step.file)")
      let declared = files.first?.lines.contains { $0.contains("func \(step.function)(") } == true
      #expect(declared, "\(step.file) has no function \(step.function)")
    }
  }
}
