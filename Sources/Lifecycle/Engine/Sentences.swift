import Policy

// The texts of the engine's decisions, and codes for programs. Codes are in snake_case, and never
// change their meaning. The sentences beside them may change in any version.

extension Cause {
  /// The reason as a code. It contains no numbers; `sentence` does.
  public var code: String { texts.code }

  /// The reason as a clause that follows a state and a colon: `idle in the background for 30 s`.
  /// `ps`, `status`, `explain`, `events` and the log all show this text.
  public var sentence: String { texts.sentence }

  private var texts: (code: String, sentence: String) {
    switch self {
    case .added: ("never_started", "not started yet")
    case .requested(let verb): ("requested_\(verb.rawValue)", verb.sentence)
    case .starting(let occasion, let verb): ("requested_\(verb.rawValue)", occasion.sentence)
    case .launched: ("launched", "launched")
    case .becameReady: ("became_ready", "ready")
    case .displaced(let other): ("displaced", "\(other) came to the foreground")
    case .idle(let time): ("idle", "idle in the foreground for \(time.text)")
    case .active: ("active", "in use (traffic, output or processor time)")
    case .graceOver(let time, let isIdle):
      ("grace_over", Self.grace(time, isIdle: isIdle ?? false))
    case .wakeNeeded(let reason): ("wake_needed", "woken by \(reason)")
    case .suspendedFor(let time):
      (
        "suspended_long_enough",
        time < .seconds(1) ? "hibernated at once" : "asleep for \(time.text)"
      )
    case .heartbeat: ("heartbeat", "heartbeat due")
    case .timer: ("own_timer", "woken by its own timer")
    case .wokenWith(let other, _): ("woken_with", "woken with \(other)")
    case .quietAgain: ("quiet_again", "idle again after its own timer")
    case .pressure(let level): ("pressure", "memory pressure was \(level.name)")
    case .footprint(let excess): ("footprint_limit", excess.sentence)
    case .restartedForFootprint(let excess):
      ("restarted_for_footprint", "restarted: \(excess.sentence)")
    case .watchdog(let reason): ("watchdog", reason)
    case .exited(let status): (status.code, status.sentence)
    case .failed(let reason): ("attempt_failed", "attempt failed: \(reason)")
    case .adopted: ("adopted", "adopted while it ran")
    case .released: ("released", "released: no longer managed")
    case .succeeded: ("succeeded", "succeeded")
    case .led(let reason): ("led", reason ?? "decided by its wrapper")
    }
  }

  private static func grace(_ time: Duration?, isIdle: Bool) -> String {
    let what = isIdle ? "idle in the background" : "in the background"
    // Journals of earlier versions lack the time.
    return time.map { "\(what) for \($0.text)" } ?? "\(what) long enough"
  }

  var isRequest: Bool {
    if case .requested = self { true } else { false }
  }
}

extension Request.Verb {
  /// What a request with this verb did, such as `woken on request`.
  fileprivate var sentence: String {
    switch self {
    case .start: "started on request"
    case .restart: "restarted"
    case .stop: "stopped on request"
    case .foreground: "brought to the foreground on request"
    case .background: "sent to the background on request"
    case .suspend: "suspended on request"
    case .hibernate: "hibernated on request"
    case .wake: "woken on request"
    case .terminate: "terminated on request"
    case .warn: "warned on request"
    case .trim: "trimmed on request"
    case .fill: "filled on request"
    case .shadow: "in shadow mode on request"
    case .enforce: "subject to the policy on request"
    case .protect: "protected on request"
    case .unprotect: "not protected any more, on request"
    }
  }
}

extension Request.Occasion {
  fileprivate var sentence: String {
    switch self {
    case .autostart: "starting (autostart)"
    case .connection: "starting for a connection"
    case .dependency: "starting for a worker that depends on it"
    case .restart: "restarting after its end"
    }
  }
}

extension ExitStatus {
  /// The kind of end as a code.
  public var code: String { texts.code }
  /// The end as a clause whose subject is the worker: `exited with status 1`.
  public var sentence: String { texts.sentence }

  private var texts: (code: String, sentence: String) {
    switch self {
    case .exited(let status): ("exited", "exited with status \(status)")
    case .signaled(let signal): ("signaled", "ended by \(Signals.text(signal))")
    case .outOfMemory: ("out_of_memory", "killed by the kernel's OOM killer")
    case .unknown: ("end_unknown", "ended, exit status unknown")
    }
  }
}

extension ShedRecord {
  /// The result as a clause, such as `freed 3.1 MB (from 20 MB to 16.9 MB)`.
  public var sentence: String {
    let silence = answered ? "" : ", and did not answer in time"
    let span = "(from \(before) to \(after))"
    return after < before
      ? "freed \(before - after) \(span)\(silence)" : "freed nothing \(span)\(silence)"
  }
}

extension Directive.ShedKind {
  /// The occasion as a clause that follows the amount of memory freed.
  public var text: String {
    switch self {
    case .didEnterBackground: "on entering the background"
    case .memoryWarning: "after a memory warning"
    }
  }
}

extension FruitlessWarnings {
  /// A clause whose subject is the worker, such as `answered 2 memory warnings and freed nothing,
  /// the last 40 s ago; …`.
  public func sentence(at now: Instant) -> String {
    let often = count == 1 ? "a memory warning" : "\(count) memory warnings"
    let last = "\(count == 1 ? "" : "the last ")\((now - last).text) ago"
    return
      "answered \(often) and freed nothing, \(last); warned after all other workers from now on"
  }
}

extension EarlyWake {
  /// A clause whose subject is the worker, such as `needed again too soon twice, the last time 40 s
  /// ago: band +10`.
  public func sentence(at now: Instant) -> String {
    let often = count == 1 ? "once" : count == 2 ? "twice" : "\(count) times"
    let text =
      "needed again too soon \(often), the last time \((now - last).text) ago: band +\(bonus)"
    return ([text] + backOffs.map(\.sentence)).joined(separator: "; ")
  }
}

extension ShadowSummary {
  /// A clause whose subject is the worker, such as `would have freed 412 MB at the cost of 3 wakes
  /// of about 9 ms`.
  public var sentence: String {
    let count = wakes == 1 ? "1 wake" : "\(wakes) wakes"
    let cost = wakes == 0 ? "no wake" : "\(count) of about \(timePerWake.text)"
    return "would have freed \(freed) at the cost of \(cost)"
  }
}

extension RegretTerms {
  /// The calculation, such as `2.1 ms/MB: 25% chance of use × 340 ms to come back / 40 MB`.
  public var sentence: String {
    let tenths = Int64((value * 10).rounded())
    let guess = isCostMeasured ? "" : " (estimated)"
    return "\(tenths / 10).\(tenths % 10) ms/MB: \((chance * 100).percentText) chance of use × "
      + "\(cost.text)\(guess) to come back / \(bytes)"
  }
}

extension WorkerState {
  /// The state as a phrase that follows "it is" or "while".
  public var text: String {
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
  var text: String {
    switch self {
    case .percent(let share): "\(share.percentText)"
    case .bytes(let count): "\(count)"
    }
  }
}

extension Double {
  /// A percentage with at most one decimal: `15%`, `12.5%`.
  var percentText: String {
    let tenths = Int64((self * 10).rounded())
    return tenths % 10 == 0 ? "\(tenths / 10)%" : "\(tenths / 10).\(tenths % 10)%"
  }
}
