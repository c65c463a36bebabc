import Glibc

/// Conversion of signal names, as operators write them: `USR1` or `SIGUSR1`.
public enum SignalName {
  private static let names: [(Int32, String)] = [
    (SIGHUP, "HUP"), (SIGINT, "INT"), (SIGQUIT, "QUIT"), (SIGABRT, "ABRT"), (SIGKILL, "KILL"),
    (SIGUSR1, "USR1"), (SIGSEGV, "SEGV"), (SIGUSR2, "USR2"), (SIGPIPE, "PIPE"),
    (SIGALRM, "ALRM"), (SIGTERM, "TERM"), (SIGCHLD, "CHLD"), (SIGCONT, "CONT"),
    (SIGSTOP, "STOP"), (SIGTSTP, "TSTP"), (SIGBUS, "BUS"), (SIGFPE, "FPE"), (SIGILL, "ILL"),
    (SIGTRAP, "TRAP"), (SIGURG, "URG"), (SIGWINCH, "WINCH"), (SIGIO, "IO"), (SIGPWR, "PWR"),
    (SIGSYS, "SYS"), (SIGXCPU, "XCPU"), (SIGXFSZ, "XFSZ"), (SIGVTALRM, "VTALRM"),
    (SIGPROF, "PROF"), (SIGTTIN, "TTIN"), (SIGTTOU, "TTOU"),
  ]

  /// The name with its prefix, such as `SIGUSR1`, or `signal 42` for a signal without a name.
  public static func text(_ number: Int32) -> String {
    names.first { $0.0 == number }.map { "SIG\($0.1)" } ?? "signal \(number)"
  }

  /// The number of a signal that is given by name, with or without `SIG`, or by its number 1–64.
  /// Returns nil for any other text.
  public static func number(_ text: String) -> Int32? {
    let upper = text.uppercased()
    let short = upper.hasPrefix("SIG") ? String(upper.dropFirst(3)) : upper
    return names.first { $0.1 == short }?.0
      ?? Int32(text).flatMap { (1...64).contains($0) ? $0 : nil }
  }
}
