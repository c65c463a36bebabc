import Foundation
import TestSupport
import Testing

/// docs/ARCHITECTURE.md leads through the code by file and function.
@Suite("The walks through the code") struct WalkTests {
  private struct Step {
    var number: Int
    /// The step that calls it; nil: a message, a timer, or a descriptor does.
    var caller: Int?
    var file: String
    var function: String
  }

  private static func walks() throws -> [(title: String, steps: [Step])] {
    let text = try String(
      contentsOfFile: SourceTree.root + "/docs/ARCHITECTURE.md", encoding: .utf8)
    return text.components(separatedBy: "\n**").dropFirst().compactMap { section in
      let steps = section.split(separator: "\n").compactMap { line -> Step? in
        let row = /^\| (\d+) \| (\d+|-) \| `([\w+]+\.swift)` \| `(\w+)` \|/
        guard let match = line.firstMatch(of: row), let number = Int(match.1) else { return nil }
        return Step(
          number: number, caller: Int(match.2), file: String(match.3), function: String(match.4))
      }
      return steps.isEmpty ? nil : (section.components(separatedBy: "**")[0], steps)
    }
  }

  /// The bodies of a file's functions by name, without comments; nil: there is no such file, or
  /// several.
  private static func functions(in file: String) -> [String: [Substring]]? {
    let files = Repository.files.filter {
      $0.path.hasPrefix("Sources/") && $0.path.hasSuffix("/" + file)
    }
    guard files.count == 1, let lines = files.first?.lines else { return nil }
    let text = lines.map { $0.components(separatedBy: "//")[0] }.joined(separator: "\n")
    return text.matches(of: /func (\w+) *(?=[(<])/).reduce(into: [:]) { bodies, match in
      if let body = body(in: text[match.range.upperBound...]) {
        bodies[String(match.1), default: []].append(body)
      }
    }
  }

  /// From the first brace outside of the parameters to its counterpart.
  private static func body(in text: Substring) -> Substring? {
    var (parentheses, braces) = (0, 0)
    var start: Substring.Index?
    for index in text.indices {
      switch text[index] {
      case "(", "[": parentheses += 1
      case ")", "]": parentheses -= 1
      case "{" where start != nil || parentheses == 0:
        if start == nil { start = index }
        braces += 1
      case "}" where start != nil:
        braces -= 1
        if braces == 0 { return start.map { text[$0..<index] } }
      default: break
      }
    }
    return nil
  }

  /// The bodies of that name, each function of the same file in place of its first use.
  private static func expanded(
    _ name: String, _ functions: [String: [Substring]], _ seen: inout Set<String>
  ) -> String {
    seen.insert(name)
    var text = ""
    for body in functions[name] ?? [] {
      var start = body.startIndex
      for word in body.matches(of: /\w+/) {
        let used = String(word.output)
        guard functions[used] != nil, !seen.contains(used) else { continue }
        text += body[start..<word.range.upperBound] + " " + expanded(used, functions, &seen) + " "
        start = word.range.upperBound
      }
      text += body[start...]
    }
    return text
  }

  @Test func `Each step of the walks is called by the step that it names, in that order`() throws {
    let walks = try Self.walks()
    #expect(walks.count == 3)
    for (title, steps) in walks {
      var texts: [Int: Substring] = [:]
      for (position, step) in steps.enumerated() {
        let name = "\(title), step \(step.number)"
        #expect(step.number == position + 1, "\(name)")
        let functions = try #require(Self.functions(in: step.file), "\(step.file)")
        #expect(functions[step.function] != nil, "\(step.file) has no function \(step.function)")
        var seen: Set<String> = []
        texts[step.number] = Self.expanded(step.function, functions, &seen)[...]
        guard let number = step.caller else { continue }
        let caller = try #require(texts[number], "\(name) names no earlier step")
        let word = try Regex("\\b\(step.function)\\b").wordBoundaryKind(.simple)
        let call = caller.firstRange(of: word)
        #expect(call != nil, "\(name): step \(number) doesn't call it, or not after the others")
        if let call { texts[number] = caller[call.upperBound...] }
      }
    }
  }

  @Test func `A walk has at most 20 steps`() throws {
    for (title, steps) in try Self.walks() { #expect(steps.count <= 20, "\(title)") }
  }
}
