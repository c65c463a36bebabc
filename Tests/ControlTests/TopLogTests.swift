import Control
import Testing

@Suite("The log in top") struct TopLogTests {
  private static func model(columns: Int, rows: Int = 24) -> TopModel {
    var model = TopModel(columns: columns, rows: rows, pane: .first(rows: rows))
    model.show(TopModelTests.three, Sample.daemon)
    model.log = TopLog(worker: "c", lines: (1...300).map { "line \($0)" })
    return model
  }

  private static func type(_ keys: [TerminalKey], _ model: inout TopModel) {
    for key in keys { _ = model.press(key) }
  }

  @Test func `The pane is below the list in 80 columns, and beside it from 120 columns on`() {
    let narrow = TopLayout(columns: 80, rows: 20, workers: 3, hasPane: true)
    #expect(narrow.position == .below && narrow.listColumns == 80 && narrow.paneColumns == 80)
    #expect(narrow.listRows == 3 && narrow.paneRows == 15)
    // Many workers get half of the rows.
    let many = TopLayout(columns: 80, rows: 20, workers: 90, hasPane: true)
    #expect(many.listRows == 9 && many.paneRows == 9)
    #expect(TopLayout(columns: 119, rows: 20, workers: 3, hasPane: true).position == .below)
    let wide = TopLayout(columns: 120, rows: 20, workers: 90, hasPane: true)
    #expect(wide.position == .beside && wide.listColumns == 60 && wide.paneColumns == 58)
    #expect(wide.listRows == 18 && wide.paneRows == 20)
    for columns in [80, 120] {
      let whole = TopLayout(columns: columns, rows: 20, workers: 3, hasPane: true, isWhole: true)
      #expect(whole.position == .whole && whole.paneColumns == columns && whole.paneRows == 20)
      let none = TopLayout(columns: columns, rows: 20, workers: 3, hasPane: false, isWhole: true)
      #expect(none.position == .none && none.listColumns == columns && none.listRows == 18)
    }
    // There is no room for a title and a line.
    #expect(TopLayout(columns: 80, rows: 4, workers: 3, hasPane: true).position == .none)
  }

  @Test("In 80 columns the log of the selected worker is below the list, without being asked for")
  func below() throws {
    var model = Self.model(columns: 80)
    let lines = model.screen(color: false)
    let title = try #require(lines.firstIndex { $0.hasPrefix("── log of c, /logs/c.log ──") })
    let list = try #require(lines.firstIndex { $0.hasPrefix("▸ c ") })
    #expect(list < title && lines.count == 24)
    #expect(lines[lines.count - 2] == "line 300", "\(lines)")
    // A small screen has room for the list alone.
    #expect(TopPane.first(rows: 19) == nil)
  }

  @Test("In 120 columns the log is right of the list, and each line of the screen has both")
  func beside() throws {
    for color in [false, true] {
      var model = Self.model(columns: 120)
      let lines = model.screen(color: color)
      #expect(lines.count == 24)
      let both = lines.filter { $0.contains("│ ") }
      #expect(both.count > 12, "\(lines)")
      #expect(both.first?.contains("1–3 of 3") == true, "\(lines)")
      #expect(both.first?.contains("│ \(color ? "\u{1B}[1m" : "")── log of c, /logs/c.log") == true)
      #expect(both.last?.hasSuffix("│ line 300") == true, "\(lines)")
      let selected = try #require(both.first { $0.contains("▸ c ") })
      #expect(selected.contains("│ line "), "\(selected)")
    }
  }

  @Test func `u and d scroll the log, which stays as it is until its end is reached again`() {
    for columns in [80, 120] {
      var model = Self.model(columns: columns)
      _ = model.screen(color: false)
      #expect(model.wantedLog?.name == "c")
      Self.type([.character("u")], &model)
      let back = model.screen(color: false).joined(separator: "\n")
      #expect(!back.contains("line 300"), "\(back)")
      #expect(back.contains("before its end, g follows it"), "\(back)")
      // The log isn't read again while the user reads it.
      #expect(model.wantedLog == nil)
      Self.type([.character("d")], &model)
      #expect(model.screen(color: false).contains { $0.hasSuffix("line 300") })
      #expect(model.wantedLog?.name == "c")
      for _ in 0..<200 {
        Self.type([.character("u")], &model)
        _ = model.screen(color: false)
      }
      #expect(model.screen(color: false).contains { $0.hasSuffix("line 1") })
      Self.type([.character("g")], &model)
      #expect(model.screen(color: false).contains { $0.hasSuffix("line 300") })
      // The log of another worker is followed from its end.
      Self.type([.character("u"), .down], &model)
      #expect(model.wantedLog?.name == "a")
    }
  }

  @Test("Enter shows the log without the list, where pages scroll it; l and Escape close it")
  func whole() {
    for columns in [80, 120] {
      var model = Self.model(columns: columns)
      Self.type([.enter], &model)
      let whole = model.screen(color: false)
      #expect(!whole.contains { $0.contains("NAME") } && whole.count == 24, "\(whole)")
      #expect(whole.contains { $0.hasPrefix("── log of c") } && whole.contains("line 300"))
      Self.type([.home], &model)
      #expect(model.screen(color: false).contains("line 1"))
      Self.type([.pageDown, .end], &model)
      #expect(model.screen(color: false).contains("line 300"))
      // Arrows still select a worker.
      Self.type([.down], &model)
      #expect(model.selected == "a")
      #expect(model.screen(color: false).contains { $0.hasPrefix("── log of a") })
      Self.type([.escape], &model)
      #expect(model.pane == .log && model.screen(color: false).contains { $0.contains("NAME") })
      Self.type([.escape], &model)
      #expect(model.pane == nil)
      Self.type([.character("u")], &model)
      #expect(model.screen(color: false).last == "no log is shown; l shows it")
      Self.type([.character("l"), .enter, .character("l")], &model)
      #expect(model.pane == nil && model.screen(color: false).contains { $0.contains("NAME") })
    }
  }

  @Test("Long lines of a log are wrapped, also within a word, and no control character is left")
  func wrapping() {
    let long = String(repeating: "x", count: 100) + " \u{1B}[2J\u{7} " + "語".padded(to: 70)
    let log = TopLog(worker: "c", lines: ["first", long])
    var back = 0
    let rows = log.rows(20, columns: 58, back: &back)
    #expect(rows.first == "first" && rows.allSatisfy { displayWidth($0) <= 58 }, "\(rows)")
    #expect(rows.joined().count { $0 == "x" } == 100 && rows.joined().count { $0 == "語" } == 70)
    #expect(rows.joined().contains("\\u{7}") && !rows.joined().contains("\u{1B}"))
    back = 1
    #expect(log.rows(2, columns: 58, back: &back) == Array(rows.dropLast().suffix(2)))
    back = 1 << 32
    #expect(log.rows(2, columns: 58, back: &back) == Array(rows.prefix(2)))
    #expect(back == rows.count - 2)
  }

  @Test("A text is broken at blanks, keeps those that it begins with, and cuts words on request")
  func breaking() {
    #expect(wrapped("  one two three", to: 9) == ["  one two", "three"])
    #expect(wrapped("one  two", to: 5) == ["one ", "two"])
    #expect(wrapped("a /a/long/path b", to: 6) == ["a", "/a/long/path", "b"])
    #expect(wrapped("a /a/long/path b", to: 6, cutsWords: true) == ["a", "/a/lon", "g/path", "b"])
    #expect(wrapped("語語語", to: 3, cutsWords: true) == ["語", "語", "語"])
    #expect(wrapped("語語", to: 1, cutsWords: true) == ["語", "語"])
  }
}

extension String {
  fileprivate func padded(to count: Int) -> String { String(repeating: self, count: count) }
}
