import Policy

// The engine's decisions in words.

extension Cause {
  /// A clause that can follow "because" or a colon: `it became ready`.
  public var sentence: String {
    switch self {
    case .added: "it has not been started yet"
    case .requested(.restart): "it is started again"
    case .requested(let verb): "`\(verb.rawValue)` was asked for"
    case .launched: "it was launched"
    case .becameReady: "it became ready"
    case .displaced(let other): "\(other) took the foreground"
    case .idle(let time): "it was idle for \(time.spoken)"
    case .active: "it became active"
    case .graceOver: "its grace in the background was over"
    case .wakeNeeded(let why): "something waited for it: \(why)"
    case .suspendedFor(let time): "it had been suspended for \(time.spoken)"
    case .heartbeat: "its heartbeat was due"
    case .timer(let why): "its own timer woke it: \(why)"
    case .quietAgain: "it was quiet again after its own timer woke it"
    case .pressure(let level): "the pressure on memory was \(level.name)"
    case .watchdog(let why): why
    case .exited(let status): status.sentence
    case .failed(let why): "the attempt failed: \(why)"
    case .adopted: "it was running already"
    case .released: "it was released, and lives on by itself"
    case .succeeded: "it succeeded"
    case .led: "whoever leads it decided so"
    }
  }

  /// The same with its subject: `web: it was launched`.
  public func sentence(worker: WorkerID) -> String { "\(worker): \(sentence)" }

  var isRequest: Bool {
    if case .requested = self { true } else { false }
  }
}

extension ExitStatus {
  public var sentence: String {
    switch self {
    case .exited(let code): "it exited with status \(code)"
    case .signaled(let signal): "\(Self.name(ofSignal: signal)) ended it"
    case .outOfMemory: "the kernel's OOM killer ended it"
    case .unknown: "it ended, and how isn't known"
    }
  }

  /// Those by which programs commonly end; the numbers are those of x86-64 and arm64 (signal(7)).
  private static func name(ofSignal number: Int32) -> String {
    let names: [Int32: String] = [
      1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL",
      10: "USR1", 11: "SEGV", 12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM", 24: "XCPU",
      25: "XFSZ", 31: "SYS",
    ]
    return names[number].map { "SIG\($0)" } ?? "signal \(number)"
  }
}

extension ShedRecord {
  /// `gave back 3.1 MB (from 20 MB to 16.9 MB)`.
  public var sentence: String {
    let silence = answered ? "" : ", and did not answer in time"
    let span = "(from \(before) to \(after))"
    return after < before
      ? "gave back \(before - after) \(span)\(silence)" : "gave nothing back \(span)\(silence)"
  }
}

extension FruitlessWarnings {
  /// `answered 2 memory warnings and gave nothing back, the last 40 s ago; …`. Its subject is the worker.
  public func sentence(at now: Instant) -> String {
    let often = count == 1 ? "a memory warning" : "\(count) memory warnings"
    let last = "\(count == 1 ? "" : "the last ")\((now - last).spoken) ago"
    return "answered \(often) and gave nothing back, \(last); it is warned after all others"
  }
}

extension EarlyWake {
  /// `put away too early twice, the last time 40 s ago: band +10`.
  public func sentence(at now: Instant) -> String {
    let often = count == 1 ? "once" : count == 2 ? "twice" : "\(count) times"
    let text =
      "put away too early \(often), the last time \((now - last).spoken) ago: band +\(bonus)"
    return ([text] + backOffs.map(\.sentence)).joined(separator: "; ")
  }
}

extension ShadowSummary {
  /// `would have freed 412 MB, and cost 3 wakes of about 9 ms`.
  public var sentence: String {
    let count = wakes == 1 ? "1 wake" : "\(wakes) wakes"
    let cost = wakes == 0 ? "no wake" : "\(count) of about \(timePerWake.spoken)"
    return "would have freed \(freed), and cost \(cost)"
  }
}

extension RegretTerms {
  /// `2.1 ms/MB: 25% chance of use × 340 ms to come back / 40 MB`.
  public var sentence: String {
    let tenths = Int64((value * 10).rounded())
    let guess = isCostKnown ? "" : " (a guess)"
    return "\(tenths / 10).\(tenths % 10) ms/MB: \((chance * 100).spokenPercent) chance of use × "
      + "\(cost.spoken)\(guess) to come back / \(bytes)"
  }
}

extension WorkerState {
  /// To follow "it is".
  public var spoken: String {
    switch self {
    case .foreground: "in the foreground"
    case .background: "in the background"
    case .suspending: "being suspended"
    case .hibernating: "being hibernated"
    case .resuming: "being resumed"
    case .terminating: "being terminated"
    case .launching, .suspended, .hibernated, .terminated: rawValue
    }
  }
}

extension PressureCondition.Amount {
  var spoken: String {
    switch self {
    case .percent(let share): "\(share.spokenPercent)"
    case .bytes(let count): "\(count)"
    }
  }
}

extension Double {
  /// `15%`, `12.5%`.
  var spokenPercent: String {
    let tenths = Int64((self * 10).rounded())
    return tenths % 10 == 0 ? "\(tenths / 10)%" : "\(tenths / 10).\(tenths % 10)%"
  }
}

extension Duration {
  /// For people: `850 µs`, `120 ms`, `1.5 s`, `30 s`, `10 min`, `2 h`.
  public var spoken: String {
    let count = wholeNanoseconds
    func text(_ unit: Int64, _ name: String) -> String {
      let tenths = (Double(count) / Double(unit) * 10).rounded()
      let whole = Int64(tenths / 10)
      let rest = Int64(tenths.truncatingRemainder(dividingBy: 10)).magnitude
      return rest == 0 || whole >= 10 ? "\(whole) \(name)" : "\(whole).\(rest) \(name)"
    }
    switch count.magnitude {
    case 0: return "0 s"
    case ..<1_000_000: return text(1_000, "µs")
    case ..<1_000_000_000: return text(1_000_000, "ms")
    case ..<120_000_000_000: return text(1_000_000_000, "s")
    case ..<7_200_000_000_000: return text(60_000_000_000, "min")
    default: return text(3_600_000_000_000, "h")
    }
  }
}
