import Glibc
import Policy

extension Signals {
  static func number(of name: String) -> Int32? {
    let bare = name.hasPrefix("SIG") ? String(name.dropFirst(3)) : name
    return named.first { $0.name == bare }?.number
  }
}

extension Converter where Value == Int32 {
  /// A signal by its name, with or without `SIG`.
  static func signal(except refused: [Int32], because reason: String) -> Converter {
    .scalar(
      "a signal's name such as `TERM`", shape: ValueShape.text.called("signal"),
      write: { number in .plain(Signals.named.first { $0.number == number }?.name ?? "TERM") }
    ) { text in
      guard let number = Signals.number(of: text) else {
        return .problem(suggestion: suggestion(for: text))
      }
      return refused.contains(number)
        ? .problem("can't be `\(text)`: \(reason)") : .success(number)
    }
  }

  static var stopSignal: Converter {
    signal(except: [SIGSTOP, SIGCONT, SIGTSTP, SIGCHLD], because: "it doesn't end a process")
  }

  /// A signal for a reload, or for shedding memory. Most signals also end a process. That doesn't
  /// matter, because the signal is sent only to a process that catches it.
  static var caughtSignal: Converter {
    signal(except: [SIGKILL, SIGSTOP], because: "no process can catch it")
  }

  private static func suggestion(for text: String) -> String? {
    if let number = Int32(text), let signal = Signals.named.first(where: { $0.number == number }) {
      return "write `\(signal.name)`"
    }
    let bare = text.uppercased().hasPrefix("SIG") ? String(text.dropFirst(3)) : text
    return didYouMean(bare, among: Signals.named.map(\.name))
  }
}
