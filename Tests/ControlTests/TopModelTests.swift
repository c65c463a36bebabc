import Control
import Testing

@Suite("The model of top") struct TopModelTests {
  static func worker(_ name: String, _ megabytes: Int64, state: String = "background")
    -> WorkerReport
  {
    var worker = WorkerReport(name: name, state: state)
    worker.footprint = megabytes << 20
    worker.peakFootprint = worker.footprint
    worker.pid = 100
    worker.reason = CodedText("ready", "it reports that it is ready")
    worker.log = "/logs/\(name).log"
    return worker
  }

  static let three = [worker("b", 20), worker("c", 30), worker("a", 20)]

  static func model(
    _ workers: [WorkerReport] = three, columns: Int = 80, rows: Int = 24, unicode: Bool = true
  ) -> TopModel {
    var model = TopModel(columns: columns, rows: rows, showsUnicode: unicode)
    model.show(workers, Sample.daemon)
    return model
  }

  /// The first words of the list's lines.
  private func names(_ model: inout TopModel) -> [String] {
    let lines = model.screen(color: false)
    let heading = lines.firstIndex { $0.hasPrefix("  NAME") } ?? lines.count
    return lines[heading...].dropFirst().prefix { $0.hasPrefix("  ") || $0.hasPrefix("▸ ") }
      .compactMap { $0.dropFirst(2).split(separator: " ").first.map(String.init) }
  }

  private func type(_ keys: String, _ model: inout TopModel) -> [TopRequest] {
    keys.flatMap { model.press(.character($0)) }
  }

  @Test func `The largest footprint is first, and equal ones are in the order of names`() {
    var model = Self.model()
    #expect(names(&model) == ["c", "a", "b"])
    #expect(model.selected == "c")
    _ = type("r", &model)
    // In the reversed order, equal workers are still in the order of their names.
    #expect(names(&model) == ["a", "b", "c"])
  }

  @Test func `s chooses one order after the other, and the selected worker stays selected`() {
    var (idle, busy) = (Self.worker("idle", 5, state: "hibernated"), Self.worker("busy", 9))
    (idle.saved, idle.secondsInState, busy.secondsInState) = (1 << 20, 3, 40)
    var model = Self.model([busy, idle, Self.worker("end", 0, state: "terminated")])
    model.show(cpu: ["idle": 0.5, "busy": 80])
    #expect(model.press(.down).isEmpty)
    #expect(model.selected == "idle")
    var seen: [WorkerOrder: [String]] = [:]
    for _ in WorkerOrder.allCases {
      seen[model.order] = names(&model)
      _ = type("s", &model)
      #expect(model.selected == "idle")
    }
    #expect(model.order == .footprint)
    #expect(seen[.footprint] == ["busy", "idle", "end"])
    #expect(seen[.name] == ["busy", "end", "idle"])
    #expect(seen[.state] == ["busy", "idle", "end"])
    #expect(seen[.for] == ["end", "idle", "busy"])
    #expect(seen[.cpu] == ["busy", "idle", "end"])
    #expect(seen[.saved] == ["idle", "busy", "end"])
  }

  @Test func `Arrows, j, k, pages, Home and End select a worker, and the list scrolls to it`() {
    var model = Self.model((10..<60).map { Self.worker("w\($0)", 1) })
    let page = names(&model).count
    #expect(page > 10 && page < 24)
    let steps: [(TerminalKey, String)] = [
      (.down, "w11"), (.character("j"), "w12"), (.up, "w11"), (.character("k"), "w10"),
      (.up, "w10"), (.end, "w59"), (.down, "w59"), (.pageUp, "w\(59 - page)"), (.home, "w10"),
      (.pageDown, "w\(10 + page)"),
    ]
    for (key, expected) in steps {
      _ = model.press(key)
      #expect(model.selected == expected, "\(key)")
      let lines = model.screen(color: false)
      #expect(lines.count == 24)
      #expect(lines.contains { $0.hasPrefix("▸ \(expected) ") }, "\(lines)")
    }
    #expect(
      model.screen(color: false).contains { $0.hasPrefix("2–") || $0.contains(" of 50, by ") })
  }

  @Test func `A selected worker that is removed passes the selection to the one at its place`() {
    var model = Self.model()
    _ = model.press(.down)
    #expect(model.selected == "a")
    model.show([Self.three[0], Self.three[1]], Sample.daemon)
    #expect(model.selected == "b")
    model.show([], Sample.daemon)
    #expect(model.selected == nil)
    #expect(model.press(.character("H")).isEmpty)
    #expect(model.screen(color: false).last == "hibernate: there is no worker")
  }

  @Test func `A filter is typed after /, Enter keeps it, and Escape clears it`() {
    var bot = Self.worker("Bot01", 1)
    bot.host = "nvim"
    var model = Self.model(Self.three + [bot, Self.worker("asleep", 1, state: "hibernated")])
    #expect(type("/boq", &model).isEmpty)
    #expect(!model.hasEnded && model.filter == "boq")
    #expect(names(&model).isEmpty)
    _ = model.press(.backspace)
    #expect(names(&model) == ["Bot01"])
    #expect(model.screen(color: false).last?.hasPrefix("/bo_") == true)
    _ = model.press(.enter)
    #expect(model.screen(color: false).contains { $0.contains("only those with \"bo\"") })
    _ = model.press(.escape)
    #expect(model.filter.isEmpty && names(&model).count == 5)
    for (text, name) in [("NVIM", "Bot01"), ("hiber", "asleep")] {
      _ = type("/" + text, &model)
      #expect(names(&model) == [name])
      _ = model.press(.escape)
    }
  }

  @Test func `Capital letters send a request for the selected worker, and its answer is shown`() {
    for (key, verb) in [
      ("W", ControlRequest.Verb.wake), ("S", .suspend), ("H", .hibernate), ("F", .foreground),
      ("B", .background), ("P", .protect),
    ] {
      var model = Self.model()
      let requests = type(key, &model)
      #expect(requests.map(\.verb) == [verb] && requests.map(\.worker) == ["c"])
      #expect(model.screen(color: false).last == "\(verb.rawValue) c: waiting for the daemon")
      let answer = ControlResponse(id: 1, result: .refused, text: "c\u{1B}[2J is busy")
      for request in requests { #expect(model.answer(answer, to: request).isEmpty) }
      #expect(model.screen(color: false).last == "c\\u{1b}[2J is busy")
    }
  }

  @Test func `P removes the protection of a worker that is protected on request`() {
    var worker = WorkerReport(name: "db", state: "hibernated")
    for (code, verb) in [
      ("protected_by_request", ControlRequest.Verb.unprotect), ("protected_by_policy", .protect),
    ] {
      worker.protection = CodedText(code, "")
      var model = TopModel(columns: 80, rows: 24)
      model.show([worker], nil)
      #expect(type("P", &model).map(\.verb) == [verb])
    }
  }

  @Test("Restart and terminate ask first; a restart is a stop and, when it is done, a start")
  func questions() throws {
    var model = Self.model()
    #expect(type("R", &model).isEmpty)
    #expect(model.screen(color: false).last?.hasPrefix("restart c? ") == true)
    #expect(type("n", &model).isEmpty)
    #expect(model.screen(color: false).last == "restart c: not done")
    let stop = try #require(type("Ry", &model).first)
    #expect(stop.verb == .stop && stop.worker == "c")
    // Selecting another worker in the meantime changes nothing.
    _ = model.press(.down)
    let done = ControlResponse(id: 1, result: .done, text: "c has ended")
    let start = try #require(model.answer(done, to: stop).first)
    #expect(start.verb == .restart && start.worker == "c")
    #expect(model.answer(done, to: start).isEmpty)
    let failed = ControlResponse(id: 1, result: .failed, text: "no")
    #expect(model.answer(failed, to: stop).isEmpty)
    _ = model.press(.home)
    #expect(type("T", &model).isEmpty)
    #expect(type("y", &model).map(\.verb) == [.terminate])
  }

  @Test func `q and Ctrl-D quit, and an unknown key names the page with the keys`() {
    for keys in ["q", "Q", "?q", "tq"] {
      var model = Self.model()
      _ = type(keys, &model)
      #expect(model.hasEnded, "\(keys)")
    }
    var model = Self.model()
    _ = type("x", &model)
    #expect(model.screen(color: false).last == "x is no key of top; ? lists the keys")
    _ = type("Rq", &model)
    #expect(!model.hasEnded)
    _ = type("/", &model)
    _ = model.press(.endOfInput)
    #expect(model.hasEnded)
  }

  @Test func `A pane wants data only while it is open, and only of the selected worker`() {
    var model = Self.model()
    #expect(model.wantedLog == nil && model.wantedProcesses == nil && model.wantedStatus == nil)
    _ = type("l", &model)
    #expect(model.wantedLog?.name == "c")
    _ = model.press(.down)
    #expect(model.wantedLog?.name == "a" && model.wantedProcesses == nil)
    _ = type("t", &model)
    #expect(model.wantedLog == nil && model.wantedProcesses?.name == "a")
    _ = type("m", &model)
    #expect(model.wantedStatus == "a")
    _ = type("m", &model)
    #expect(model.wantedStatus == nil)
    _ = type("l", &model)
    _ = model.press(.escape)
    #expect(model.pane == nil)
  }
}
