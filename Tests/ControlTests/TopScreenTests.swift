import Control
import Testing

@testable import Linux

@Suite("The screen of top") struct TopScreenTests {
  private static func columns(_ line: String) -> Int {
    var text = ""
    var isSequence = false
    for character in line {
      if character == "\u{1B}" { isSequence = true }
      if !isSequence { text.append(character) }
      if isSequence, character == "m" { isSequence = false }
    }
    return displayWidth(text)
  }

  /// Workers with names, states and reasons of every length.
  private static var many: [WorkerReport] {
    (0..<40).map { number in
      var worker = TopModelTests.worker(
        "worker-" + String(repeating: "ü語", count: number % 9) + "\(number)", Int64(number) * 37)
      worker.state = ["foreground", "hibernated", "a-state-of-a-newer-daemon"][number % 3]
      worker.reason.text = String(repeating: "word ", count: number)
      worker.secondsInState = Double(number * number * 1000)
      (worker.host, worker.directory) = (number % 5 == 0 ? "nvim" : nil, "/home/me/shop")
      (worker.saved, worker.imageSize) = (1000 << 20, 1000 << 20)
      return worker
    }
  }

  private static let processes = TopProcesses(
    worker: "worker-語",
    processes: (1...30).map { .init(pid: $0, parent: $0 / 2, name: "p\($0)", footprint: 4096) })

  @Test(
    "No line is wider than the screen and no screen has more lines than it has rows",
    arguments: [60, 61, 80, 120], [10, 13, 24])
  func sizes(columns: Int, rows: Int) throws {
    for unicode in [true, false] {
      var model = TopModel(columns: columns, rows: rows, showsUnicode: unicode)
      for _ in 0..<70 { model.show(Self.many, Sample.daemon) }
      model.show(cpu: ["worker-0": 1600])
      for keys in ["", "?", "x", "l", "t", "m", "R", "n", "s", "s", "s", "s", "s", "/wo"] {
        for key in keys { _ = model.press(.character(key)) }
        let worker = try #require(model.selected)
        model.processes = TopProcesses(worker: worker, processes: Self.processes.processes)
        model.log = TopLog(
          worker: worker, lines: (0..<60).map { String(repeating: "語 log ", count: $0) })
        let plain = model.screen(color: false)
        #expect(plain.count <= rows, "\(keys): \(plain)")
        #expect(plain.allSatisfy { Self.columns($0) <= columns }, "\(keys): \(plain)")
        #expect(!plain.joined().contains("\u{1B}"))
        let painted = model.screen(color: true)
        #expect(painted.allSatisfy { Self.columns($0) <= columns }, "\(keys): \(painted)")
        if keys == "?" { _ = model.press(.character("h")) }
        if !unicode, keys.isEmpty {
          #expect(plain.joined().allSatisfy { !"▸▁▂▃▄▅▆▇█─├└│–".contains($0) }, "\(plain)")
        }
      }
    }
  }

  @Test func `A screen of less than 60 columns or 10 rows gets a sentence with both sizes`() {
    for (columns, rows) in [(59, 24), (80, 9), (20, 5), (1, 1)] {
      var model = TopModelTests.model(columns: columns, rows: rows)
      let lines = model.screen(color: true)
      #expect(lines.count <= rows && lines.allSatisfy { Self.columns($0) <= columns }, "\(lines)")
      if columns > 20 {
        let text = lines.joined(separator: " ")
        #expect(
          text.contains("\(columns) columns and \(rows) rows; top needs 60 and 10"), "\(text)")
      }
    }
  }

  @Test("In 80 columns the list has reasons, and in 60 columns names, states, memory and CPU")
  func list() {
    var model = TopModelTests.model()
    model.show(cpu: ["c": 12.34])
    let wide = model.screen(color: false)
    #expect(wide.contains("  NAME  STATE       FOOTPRINT     CPU  IMAGE  FOR  REASON"), "\(wide)")
    #expect(
      wide.contains {
        $0.hasPrefix("▸ c     background    30.0 MB  12.3 %      -  0 s  it reports")
      },
      "\(wide)")
    #expect(wide.contains("1–3 of 3, by footprint, largest first"), "\(wide)")
    var narrow = TopModelTests.model(Self.many, columns: 60)
    #expect(narrow.screen(color: false).contains { $0.contains("FOOTPRINT") && $0.contains("CPU") })
  }

  @Test func `The first line is what sleep saves now, and no other line repeats it`() {
    var worker = TopModelTests.worker("idle", 1, state: "hibernated")
    worker.saved = 3 << 20
    var model = TopModel(columns: 80, rows: 24)
    model.show([worker, TopModelTests.worker("busy", 4)], nil)
    let lines = model.screen(color: false)
    #expect(lines.first == "saved now 3.0 MB of 8.0 MB (38 %)", "\(lines)")
    #expect(lines.count { $0.contains("saved now") } == 1, "\(lines)")
  }

  @Test("The selected line is marked without colours, and reversed over the whole width with them")
  func selection() {
    var model = TopModelTests.model(unicode: false)
    #expect(model.screen(color: false).count { $0.hasPrefix("> c ") } == 1)
    let painted = model.screen(color: true).filter { $0.contains("\u{1B}[7m") }
    #expect(painted.count == 1 && Self.columns(painted[0]) == 80, "\(painted)")
  }

  @Test("The memory of the last looks is drawn as curves, in ASCII where the locale isn't UTF-8")
  func curves() {
    #expect(sparkline([0, 1, 4, 8, 9], to: 8, unicode: true) == "▁▂▅██")
    #expect(
      sparkline([0, 4, 8], to: 8, unicode: false)
        == "_=#")
    #expect(sparkline([5], to: 0, unicode: true) == "▁")
    var model = TopModel(columns: 80, rows: 24)
    for size in [10, 20, 40] {
      model.show([TopModelTests.worker("a", Int64(size))], Sample.daemon)
    }
    let line = model.screen(color: false).first { $0.hasPrefix("available ") } ?? ""
    #expect(line.hasPrefix("available ▂▂▂ ") && line.contains(" of 256.0 MB  "), "\(line)")
    #expect(line.contains("footprints ▃▅█ ") && line.hasSuffix(" of 40.0 MB"), "\(line)")
  }

  @Test func `The processes of a worker are shown as a tree with their footprints`() {
    var model = TopModelTests.model()
    _ = model.press(.character("t"))
    #expect(model.screen(color: false).contains("reading …"))
    let processes: [TopProcesses.Process] = [
      .init(pid: 10, parent: 1, name: "sh", footprint: 1 << 20),
      .init(pid: 12, parent: 11, name: "leaf\n", footprint: nil),
      .init(pid: 11, parent: 10, name: "node", footprint: 2 << 20),
      .init(pid: 13, parent: 10, name: "last", footprint: 0),
    ]
    model.processes = TopProcesses(worker: "another", processes: [])
    #expect(model.screen(color: false).contains("reading …"))
    model.processes = TopProcesses(worker: "c", processes: processes)
    let lines = model.screen(color: false)
    for line in [
      "PID  FOOTPRINT  PROCESS", " 10     1.0 MB  sh", " 11     2.0 MB  ├─ node",
      " 12          ?  │  └─ leaf\\n", " 13        0 B  └─ last",
    ] { #expect(lines.contains(line), "\(line): \(lines)") }
    #expect(lines.contains { $0.hasPrefix("── processes of c: 4, 3.0 MB ─") })
  }

  @Test func `The log pane shows the last lines without the worker's escape sequences`() {
    var model = TopModelTests.model(rows: 16)
    _ = model.press(.character("l"))
    let lines = (1...50).map { "line \($0)" } + ["\u{1B}[31mred\u{1B}[0m\u{1B}[2J end"]
    model.log = TopLog(worker: "c", lines: lines)
    let shown = model.screen(color: true)
    #expect(shown.contains("line 50") && shown.contains("red end"), "\(shown)")
    #expect(!shown.contains("line 1") && shown.contains { $0.contains("/logs/c.log") })
    model.log = TopLog(worker: "c", lines: [], problem: "its log can't be read: EACCES")
    #expect(model.screen(color: false).contains("its log can't be read: EACCES"))
  }

  @Test(
    "A line of a log is shown without sequences, with tab stops, and as a terminal leaves it",
    arguments: [
      ("plain", "plain"), ("\u{1B}[1;31mred\u{1B}[m", "red"), ("a\tb", "a       b"),
      ("\u{1B}]0;title\u{7}x", "x"), ("\u{1B}]8;;http://a\u{1B}\\link", "link"),
      ("\u{1B}(Bx", "x"), ("10 %\r90 %\r", "90 %"), ("end\u{1B}", "end"), ("\u{1B}[", ""),
      ("bell\u{7}", "bell\\u{7}"), ("\u{9B}2J", "\\u{9b}2J"), ("\u{202E}x", "\\u{202e}x"),
    ])
  func logLine(line: String, shown: String) { #expect(logText(line) == shown) }

  @Test("The memory of a worker is shown by kind, with what `status` knows of swap")
  func memory() {
    var worker = TopModelTests.worker("c", 20, state: "hibernated")
    (worker.reclaimable, worker.purgeable, worker.saved) = (10 << 20, 5 << 20, 1 << 20)
    worker.imageSize = 40 << 20
    var model = TopModelTests.model([worker])
    _ = model.press(.character("m"))
    #expect(!model.screen(color: false).contains { $0.hasPrefix("swapped") })
    worker.swapped = 2 << 20
    model.status = worker
    let lines = model.screen(color: false)
    for (kind, size) in [
      ("footprint", "20.0 MB"), ("swapped", "2.0 MB"), ("reclaimable", "10.0 MB"),
      ("purgeable", "5.0 MB"), ("saved", "1.0 MB"), ("image", "40.0 MB"),
    ] {
      #expect(
        lines.contains { $0.hasPrefix(kind) && $0.contains(" \(size)  █") }, "\(kind): \(lines)")
    }
    #expect(!lines.contains { $0.hasPrefix("base") })
  }

  @Test("Before the first answer, and when the daemon is late, the screen says that it waits")
  func waiting() {
    var model = TopModel(columns: 80, rows: 24)
    #expect(model.screen(color: false) == ["waiting for the daemon", "q quits"])
    model.secondsWaited = 3.7
    #expect(model.screen(color: false).first == "waiting for the daemon for 3 s")
    model.show(TopModelTests.three, Sample.daemon)
    #expect(model.screen(color: false).last == "the daemon has not answered for 3 s")
  }

  @Test func `o lists the largest processes that belong to no worker, and o again hides them`() {
    var model = TopModelTests.model(columns: 80)
    #expect(model.wantedOthers == nil)
    _ = model.press(.character("o"))
    #expect(model.wantedOthers?.isEmpty == false)
    #expect(model.screen(color: false).contains("reading …"))
    model.others = TopOthers(processes: [.init(pid: 812, name: "chrome\u{1B}", resident: 1 << 30)])
    let lines = model.screen(color: false)
    #expect(lines.contains { $0.hasPrefix("── largest processes of no worker ──") }, "\(lines)")
    #expect(lines.contains { $0.hasPrefix("812    1.0 GB  chrome\\u{1b}") }, "\(lines)")
    _ = model.press(.character("o"))
    #expect(
      model.wantedOthers == nil && !model.screen(color: false).contains { $0.contains("chrome") })
  }

  @Test func `Protection and saved memory of a worker are shown, before reasons, where they fit`() {
    var worker = WorkerReport(name: "db", state: "hibernated")
    (worker.footprint, worker.saved, worker.secondsInState) = (8 << 10, 90 << 20, 7200)
    worker.reason = CodedText("suspended_long_enough", "suspended for 30 s, and more words")
    let other = WorkerReport(name: "web", state: "foreground")
    for (columns, titles) in [
      (120, "NAME STATE PROT FOOTPRINT CPU SAVED IMAGE PID FOR REASON"),
      (80, "NAME STATE PROT FOOTPRINT CPU SAVED FOR REASON"),
      (60, "NAME STATE PROT FOOTPRINT CPU SAVED FOR"),
    ] {
      worker.protection = CodedText("protected_by_policy", "protected")
      var model = TopModel(columns: columns, rows: 24)
      model.show([worker, other], nil)
      let lines = model.screen(color: false)
      let heading = lines.first { $0.contains("FOOTPRINT") } ?? ""
      #expect(heading.split(separator: " ").joined(separator: " ") == titles, "\(columns)")
      #expect(lines.contains { $0.contains("hibernated  yes") && $0.contains("90.0 MB") })
      #expect(lines.contains { $0.contains("foreground  - ") })
      #expect(lines.allSatisfy { $0.count <= columns }, "\(lines)")
    }
    worker.protection = nil
    var model = TopModel(columns: 80, rows: 24)
    model.show([worker], nil)
    #expect(!model.screen(color: false).contains { $0.contains("PROT") })
  }

  @Test func `The page of keys fits a terminal of 60 columns and 24 rows, and names every key`() {
    var model = TopModelTests.model(columns: 60)
    _ = model.press(.character("?"))
    let lines = model.screen(color: false)
    let last = "q quits; any other key closes this page."
    #expect(lines.count <= 24 && lines.last == last, "\(lines)")
    let text = TopHelp.keys.map(\.keys).joined(separator: " ").split(separator: " ")
    for key in TopAction.allCases.map(\.rawValue) + TopPane.allCases.map(\.rawValue) {
      #expect(text.contains(Substring(String(key))), "\(key)")
    }
  }
}
