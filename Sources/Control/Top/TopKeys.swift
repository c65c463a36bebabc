/// The handling of the keys of `top`.
extension TopModel {
  /// Handles a key, and returns the requests to send.
  package mutating func press(_ key: TerminalKey) -> [TopRequest] {
    if key == .endOfInput {
      hasEnded = true
      return []
    }
    switch mode {
    case .filter: edit(key)
    case .question(let action, let worker): return decide(key, action, worker: worker)
    case .help:
      mode = .list
      if key == .character("q") || key == .character("Q") { hasEnded = true }
    case .list:
      message = nil
      if !move(by: key) { return command(key) }
    }
    return []
  }

  private mutating func edit(_ key: TerminalKey) {
    switch key {
    case .character(let character): filter.append(character)
    case .backspace where filter.isEmpty: mode = .list
    case .backspace: filter.removeLast()
    case .enter: mode = .list
    case .escape:
      filter = ""
      mode = .list
    default: _ = move(by: key)
    }
    arrange()
  }

  private mutating func decide(
    _ key: TerminalKey, _ action: TopAction, worker: String
  ) -> [TopRequest] {
    mode = .list
    if key == .character("y") || key == .character("Y") {
      return [request(action, as: action.verb(), of: worker)]
    }
    message = Message(text: "\(action.name) \(escaped(worker)): not done")
    return []
  }

  private mutating func move(by key: TerminalKey) -> Bool {
    switch key {
    case .pageUp where isWhole && pane == .log: scroll(by: logPage)
    case .pageDown where isWhole && pane == .log: scroll(by: -logPage)
    case .home where isWhole && pane == .log: scroll(by: Self.wholeLog)
    case .end where isWhole && pane == .log: scroll(by: -scrolledBack)
    case .up, .character("k"): select(selectedIndex - 1)
    case .down, .character("j"): select(selectedIndex + 1)
    case .pageUp: select(selectedIndex - page)
    case .pageDown: select(selectedIndex + page)
    case .home: select(0)
    case .end: select(shown.count - 1)
    default: return false
    }
    return true
  }

  private mutating func command(_ key: TerminalKey) -> [TopRequest] {
    switch key {
    case .escape:
      if filter.isEmpty, !isWhole { pane = nil }
      if filter.isEmpty { isWhole = false }
      filter = ""
      arrange()
    case .enter:
      if pane == nil { pane = .log }
      isWhole.toggle()
    case .character(let character): return command(character)
    default: break
    }
    return []
  }

  private mutating func command(_ character: Character) -> [TopRequest] {
    switch character {
    case "q", "Q": hasEnded = true
    case "?", "h": mode = .help
    case "/": mode = .filter
    case "s":
      order = order.next
      arrange()
    case "r":
      isReversed.toggle()
      arrange()
    case _ where TopPane(rawValue: character) != nil:
      let wanted = TopPane(rawValue: character)
      pane = pane == wanted ? nil : wanted
      if pane == nil { isWhole = false }
    case "u": scroll(by: logPage)
    case "d": scroll(by: -logPage)
    case "g": scroll(by: -scrolledBack)
    case _ where TopAction(rawValue: character) != nil:
      guard let action = TopAction(rawValue: character) else { break }
      return begin(action)
    default:
      let shown = escaped(String(character))
      message = Message(text: "\(shown) is no key of top; ? lists the keys", isFailure: true)
    }
    return []
  }

  /// The number of rows to the beginning of any log.
  private static let wholeLog = 1 << 32

  /// Scrolls the log back if `rows` is positive. The screen limits it to the rows of the log.
  private mutating func scroll(by rows: Int) {
    guard pane == .log else {
      message = Message(text: "no log is shown; l shows it", isFailure: true)
      return
    }
    scrolledBack = max(scrolledBack + rows, 0)
  }

  private mutating func begin(_ action: TopAction) -> [TopRequest] {
    guard let worker else {
      message = Message(text: "\(action.name): there is no worker", isFailure: true)
      return []
    }
    if action.question(about: worker.name) != nil {
      mode = .question(action, worker: worker.name)
      return []
    }
    let isProtected = worker.protection?.code == "protected_by_request"
    return [request(action, as: action.verb(isProtected: isProtected), of: worker.name)]
  }

  private mutating func request(
    _ action: TopAction, as verb: ControlRequest.Verb, of worker: String
  ) -> TopRequest {
    let name = action == .restart ? action.name : verb.rawValue
    message = Message(text: "\(name) \(escaped(worker)): waiting for the daemon")
    return TopRequest(action: action, verb: verb, worker: worker)
  }
}
