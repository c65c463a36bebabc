import Foundation
import Testing

/// Each page of the repository for people: README, docs, the examples' pages, WorkerKit's articles,
/// results.
@Suite("The documentation") struct DocumentationStyleTests {
  private struct Page: Sendable {
    let path: String
    let lines: [String]

    /// Without fenced blocks; with the numbers of the lines.
    var prose: [(number: Int, text: String)] {
      var isCode = false
      return lines.enumerated().compactMap { index, line in
        if line.drop(while: { $0 == " " }).hasPrefix("```") {
          isCode.toggle()
          return nil
        }
        return isCode ? nil : (index + 1, line)
      }
    }

    /// What a link's `#` may name, as GitHub makes it of a heading.
    var anchors: Set<String> {
      Set(
        prose.filter { $0.text.hasPrefix("#") }.map { heading in
          heading.text.drop { $0 == "#" }.dropFirst().lowercased()
            .filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }
            .replacing(" ", with: "-")
        })
    }

    var links: [(path: String, anchor: String)] {
      prose.flatMap { line in
        line.text.matches(of: /\]\(([^)#:\s]*)(?:#([^)\s]*))?\)/).map {
          (String($0.1), String($0.2 ?? ""))
        }
      }
    }
  }

  private static let pages: [Page] = Repository.files.filter { $0.path.hasSuffix(".md") }
    .map { Page(path: $0.path, lines: $0.lines) }

  /// A line has 120 characters at most; a longer one counts as several.
  @Test func `No page has a paragraph of more than six lines`() {
    #expect(Self.pages.count > 50)
    for page in Self.pages {
      var length = 0
      var last = 0
      for (number, line) in page.prose {
        let text = line.drop { $0 == " " }
        let isText = !text.isEmpty && !text.hasPrefix("#") && !text.hasPrefix("|")
        let isItem = text.prefixMatch(of: #/[-*] |\d+\. /#) != nil
        if !isText || isItem || number != last + 1 { length = 0 }
        if isText { length += (line.count + 119) / 120 }
        last = number
        #expect(length <= 6, "\(page.path):\(number): a paragraph of more than six lines")
      }
    }
  }

  @Test func `The index of docs names every page`() throws {
    let index = try #require(Self.pages.first { $0.path == "docs/README.md" })
    let linked = Set(index.links.map(\.path))
    for page in Self.pages where page.path.hasPrefix("docs/") && page.path != index.path {
      let name = String(page.path.dropFirst("docs/".count))
      #expect(linked.contains(name), "docs/README.md doesn't name \(name)")
    }
  }

  @Test func `Every link in the documentation leads to an existing file and heading`() throws {
    let anchors = Dictionary(uniqueKeysWithValues: Self.pages.map { ($0.path, $0.anchors) })
    var count = 0
    for page in Self.pages {
      let directory = Repository.root.appending(path: page.path).deletingLastPathComponent()
      for link in page.links {
        count += 1
        let target =
          link.path.isEmpty
          ? Repository.root.appending(path: page.path)
          : directory.appending(path: link.path).standardizedFileURL
        let path = target.path(percentEncoded: false)
        guard FileManager.default.fileExists(atPath: path) else {
          Issue.record("\(page.path) links to \(link.path), which isn't there")
          continue
        }
        guard !link.anchor.isEmpty else { continue }
        let root = Repository.root.path(percentEncoded: false)
        let existing = anchors[String(path.dropFirst(root.count).drop { $0 == "/" })]
        #expect(
          existing?.contains(link.anchor) == true,
          "\(page.path) links to \(link.path)#\(link.anchor), which no heading has")
      }
    }
    #expect(count > 150)
  }

  @Test func `Every test, script and benchmark that the documentation names exists`() throws {
    let specification = try #require(Self.pages.first { $0.path == "SPECIFICATION.md" })
    let text = specification.lines.joined(separator: "\n")
    let suites = Set(text.matches(of: /`([A-Za-z]+Tests)`/).map { String($0.1) })
    #expect(suites.count > 20)
    let sources = Set(Repository.files.filter(\.isSwift).map(\.name))
    for suite in suites { #expect(sources.contains("\(suite).swift"), "\(suite)") }
    for page in Self.pages {
      let names = page.lines.joined(separator: "\n")
        .matches(of: /`((?:scripts|Benchmarks|Packaging|Policies)\/[A-Za-z0-9_.\/-]+)`/)
      for match in names {
        let url = Repository.root.appending(path: String(match.1))
        #expect(
          FileManager.default.fileExists(atPath: url.path(percentEncoded: false)),
          "\(page.path) names \(match.1)")
      }
    }
  }
}
