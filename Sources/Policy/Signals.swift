import Glibc

/// Linux' signals by name, without `SIG`.
public enum Signals {
  public static let named: [(name: String, number: Int32)] = [
    ("HUP", SIGHUP), ("INT", SIGINT), ("QUIT", SIGQUIT), ("ILL", SIGILL), ("TRAP", SIGTRAP),
    ("ABRT", SIGABRT), ("BUS", SIGBUS), ("FPE", SIGFPE), ("KILL", SIGKILL), ("USR1", SIGUSR1),
    ("SEGV", SIGSEGV), ("USR2", SIGUSR2), ("PIPE", SIGPIPE), ("ALRM", SIGALRM),
    ("TERM", SIGTERM), ("CHLD", SIGCHLD), ("CONT", SIGCONT), ("STOP", SIGSTOP),
    ("TSTP", SIGTSTP), ("TTIN", SIGTTIN), ("TTOU", SIGTTOU), ("URG", SIGURG),
    ("XCPU", SIGXCPU), ("XFSZ", SIGXFSZ), ("VTALRM", SIGVTALRM), ("PROF", SIGPROF),
    ("WINCH", SIGWINCH), ("IO", SIGIO), ("PWR", SIGPWR), ("SYS", SIGSYS),
  ]

  /// The name with its prefix, such as `SIGUSR1`, or `signal 42` for a signal without a name.
  public static func text(_ number: Int32) -> String {
    named.first { $0.number == number }.map { "SIG\($0.name)" } ?? "signal \(number)"
  }

  /// The number of a signal that an operator gives by name, with or without `SIG`, or by its number
  /// 1–64. Returns nil for any other text.
  public static func number(_ text: String) -> Int32? {
    let upper = text.uppercased()
    let short = upper.hasPrefix("SIG") ? String(upper.dropFirst(3)) : upper
    return named.first { $0.name == short }?.number
      ?? Int32(text).flatMap { (1...64).contains($0) ? $0 : nil }
  }
}
