import Control
import Linux

/// The lines that edits change, as `diff -U1` shows them.
struct Difference {
  private static let context = 1
  /// The maximum length of a shown line, in characters: a file may be one long line.
  private static let maxLength = 400

  private let old: [UInt8]
  private let edits: [TextEdit]
  /// The offset at which each line of the old text begins.
  private let starts: [Int]
  /// The number of the last line. A last line feed doesn't begin another one.
  private let lastLine: Int

  init(old: [UInt8], edits: [TextEdit]) {
    self.old = old
    self.edits = TextEdit.sorted(edits)
    starts = [0] + old.indices.filter { old[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
    lastLine = max(starts.count - (old.last == UInt8(ascii: "\n") ? 2 : 1), 0)
  }

  /// Edits that touch common lines.
  private struct Group {
    /// The numbers of the first and the last line.
    var lines: ClosedRange<Int>
    var edits: [TextEdit]
  }

  var lines: [String] {
    var result: [String] = []
    var added = 0
    for hunk in hunks {
      guard let (start, end) = hunk.first.map({ ($0.lines.lowerBound, hunk.last ?? $0) }) else {
        continue
      }
      let upper = end.lines.upperBound
      let first = max(start - Self.context, 0)
      let last = max(min(upper + Self.context, lastLine), upper)
      var (text, grown, next) = ([String](), 0, start)
      for group in hunk {
        text += (next..<group.lines.lowerBound).map { " " + shown(line($0)) }
        let (before, after) = both(group)
        text += changed(before, after)
        grown += after.count - before.count
        next = group.lines.upperBound + 1
      }
      let count = last - first + 1
      result.append("@@ -\(first + 1),\(count) +\(first + 1 + added),\(count + grown) @@")
      added += grown
      result += (first..<start).map { " " + shown(line($0)) }
      result += text
      result += (upper..<last).map { " " + shown(line($0 + 1)) }
    }
    return result
  }

  /// The lines of a group before and after its edits.
  private func both(_ group: Group) -> (before: [[UInt8]], after: [[UInt8]]) {
    let range = starts[group.lines.lowerBound]..<end(group.lines.upperBound)
    let old = Array(old[range])
    let edits = group.edits.map { edit in
      TextEdit(
        edit.range.lowerBound - range.lowerBound..<edit.range.upperBound - range.lowerBound,
        edit.bytes)
    }
    return (Self.split(old), Self.split(TextEdit.apply(edits, to: old)))
  }

  /// The groups, of which those that are near each other are together.
  private var hunks: [[Group]] {
    var hunks: [[Group]] = []
    for group in groups {
      if let before = hunks.last?.last,
        group.lines.lowerBound <= before.lines.upperBound + 2 * Self.context + 1
      {
        hunks[hunks.count - 1].append(group)
      } else {
        hunks.append([group])
      }
    }
    return hunks
  }

  private var groups: [Group] {
    var groups: [Group] = []
    for edit in edits {
      let first = number(edit.range.lowerBound)
      let last = max(first, number(edit.range.upperBound))
      if let before = groups.last?.lines, first <= before.upperBound {
        groups[groups.count - 1].lines = before.lowerBound...max(last, before.upperBound)
        groups[groups.count - 1].edits.append(edit)
      } else {
        groups.append(Group(lines: first...last, edits: [edit]))
      }
    }
    return groups
  }

  /// The number of the line that has a byte.
  private func number(_ offset: Int) -> Int {
    starts.partitioningIndex { $0 > offset } - 1
  }

  /// The end of a line, without its line feed.
  private func end(_ line: Int) -> Int {
    line + 1 < starts.count ? starts[line + 1] - 1 : old.count
  }

  private func line(_ number: Int) -> [UInt8] { Array(old[starts[number]..<end(number)]) }

  private static func split(_ bytes: [UInt8]) -> [[UInt8]] {
    bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
  }

  private func changed(_ before: [[UInt8]], _ after: [[UInt8]]) -> [String] {
    var (removed, inserted): (Set<Int>, Set<Int>) = ([], [])
    for change in after.difference(from: before) {
      switch change {
      case .remove(let offset, _, _): removed.insert(offset)
      case .insert(let offset, _, _): inserted.insert(offset)
      }
    }
    var result: [String] = []
    var (old, new) = (0, 0)
    while old < before.count || new < after.count {
      if removed.contains(old) {
        result.append("-" + shown(before[old]))
        old += 1
      } else if inserted.contains(new) {
        result.append("+" + shown(after[new]))
        new += 1
      } else {
        result.append(" " + shown(before[old]))
        old += 1
        new += 1
      }
    }
    return result
  }

  private func shown(_ line: [UInt8]) -> String {
    let text = String(decoding: line.last == 0x0D ? line.dropLast() : line[...], as: UTF8.self)
    return shortened(escaped(text).replacingTabs, to: Self.maxLength)
  }
}

extension String {
  /// The text with tabs as its indentation. `escaped` writes a tab as `\t`.
  fileprivate var replacingTabs: String {
    guard hasPrefix("\\t") else { return self }
    var remainder = self[...]
    var indent = ""
    while remainder.hasPrefix("\\t") {
      remainder = remainder.dropFirst(2)
      indent += "\t"
    }
    return indent + remainder
  }
}
