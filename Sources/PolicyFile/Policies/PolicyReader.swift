import Policy
import YAML

/// Reads the keys of a policy over a base, then checks what concerns more than one key.
struct PolicyReader {
  enum Scope {
    /// A policy file: all keys.
    case policy
    /// Laid over a policy: all but its name.
    case overrides
    /// For one worker: what isn't decided for the machine as a whole.
    case worker
  }

  var scope: Scope
  /// What `extends` leads to; `nil`: there is no other file to read.
  var extended: ExtendedPolicy?

  func read(_ top: MappingReader, over base: LifecyclePolicy) -> LifecyclePolicy {
    let policy = keys(top, over: base)
    PolicyChecks(policy: policy, readers: [top], isOfWorker: scope == .worker).run()
    return policy
  }

  /// The keys alone, for texts that are laid over each other before they are checked.
  func keys(_ top: MappingReader, over base: LifecyclePolicy) -> LifecyclePolicy {
    var policy = base
    if scope == .policy {
      if let reference = top.read("extends", as: .extended),
        let found = extended?.load(reference, for: top)
      {
        policy = found.policy
        policy.name = base.name
      }
      top.read("name", into: &policy.name, as: .name("a name such as `my-policy`"))
    } else {
      refuse(
        "extends", of: top, "belongs at the top of a policy file",
        suggestion: "write such a file, and name it in `policy`")
      refuse("name", of: top, "can't be overridden: it is the policy's own")
    }
    machineWide("mode", of: top) { $0.read($1, into: &policy.mode, as: .choice) }
    machineWide("memory", of: top) { top, key in
      top.section(key) { $0.read("budget", into: &policy.memory, as: .budget) }
    }
    machineWide("pressure", of: top) { top, key in
      top.section(key) { PressureReader(reader: $0).read(&policy.pressure) }
    }
    top.section("foreground") { foreground($0, &policy.foreground) }
    top.section("background") { background($0, &policy.background) }
    top.section("hibernate") { hibernate($0, &policy.hibernate) }
    top.section("watchdog") { watchdog($0, &policy.watchdog) }
    let word = top.section("terminate", or: [("never", "for_memory"), ("ask", "ask")]) {
      terminate($0, &policy.terminate)
    }
    if word == "never" { policy.terminate.forMemory = false }
    if word == "ask" { policy.terminate.ask = TerminationRules.usualAsk }
    top.section("early_wake") { earlyWake($0, &policy.earlyWake) }
    machineWide("ladder", of: top) { top, key in
      top.section(key) { LadderReader(reader: $0).read(&policy.ladder) }
    }
    top.finish()
    return policy
  }

  private func foreground(_ reader: MappingReader, _ rules: inout ForegroundRules) {
    machineWide("mode", of: reader) { $0.read($1, into: &rules.mode, as: .choice) }
    machineWide("max", of: reader) {
      $0.read(
        $1, into: &rules.max,
        as: Converter.integer(1 ... .max).map(Optional.some).orWord("unlimited", nil))
    }
    reader.read("idle_after", into: &rules.idleAfter, as: .duration.notZero)
    reader.read("cpu_below", into: &rules.cpuBelow, as: .percent)
  }

  private func background(_ reader: MappingReader, _ rules: inout BackgroundRules) {
    reader.read("shed_deadline", into: &rules.shedDeadline, as: .duration.notZero)
    reader.read("task_limit", into: &rules.taskLimit, as: .duration)
    reader.read(
      "suspend_after", into: &rules.suspendAfter,
      as: Converter.duration.map(Optional.some).orWord("never", nil))
    reader.read(
      "wake_for_timers", into: &rules.wakeForTimers,
      as: Converter.duration.notZero.map(Optional.some).orWord("never", nil))
    reader.section("safe_point") { reader in
      reader.read("file_locks", into: &rules.safePoint.fileLocks, as: .duration)
      reader.read("hold", into: &rules.safePoint.hold, as: .duration)
      reader.read("after_launch", into: &rules.safePoint.afterLaunch, as: .duration)
      reader.read("after_wake", into: &rules.safePoint.afterWake, as: .duration)
    }
    heartbeat(reader, &rules.heartbeat)
  }

  /// Written whole, or `never`.
  private func heartbeat(_ reader: MappingReader, _ rules: inout HeartbeatRules?) {
    let inner: MappingReader
    switch reader.mapping("heartbeat", or: "never") {
    case nil: return
    case .word:
      rules = nil
      return
    case .mapping(let found): inner = found
    }
    let every = inner.read("every", as: .duration.notZero)
    let lasting = inner.read("for", as: .duration.notZero)
    var whileHibernated = false
    inner.read("hibernated", into: &whileHibernated, as: .boolean)
    for key in ["every", "for"] where inner.position(ofKey: key) == nil {
      inner.sink.error(
        at: inner.own ?? reader.places[inner.path], "`heartbeat` needs `\(key)`",
        suggestion: "write `heartbeat: { every: 15m, for: 5s }`, or `heartbeat: never`")
    }
    inner.finish()
    guard let every, let lasting else { return }
    rules = HeartbeatRules(every: every, lasting: lasting, whileHibernated: whileHibernated)
  }

  private func earlyWake(_ reader: MappingReader, _ rules: inout EarlyWakeRules) {
    reader.read("within", into: &rules.within, as: .duration)
    reader.read("bonus", into: &rules.bonus, as: .integer(0...29))
    reader.read("halves_every", into: &rules.halvesEvery, as: .duration.notZero)
    reader.read(
      "max_idle", into: &rules.maxIdle,
      as: Converter.duration.notZero.map(Optional.some).orWord("never", nil))
  }

  private func hibernate(_ reader: MappingReader, _ rules: inout HibernationRules) {
    reader.read("enabled", into: &rules.enabled, as: .boolean)
    reader.read(
      "max_footprint", into: &rules.maxFootprint,
      as: Converter.size.map(Optional.some).orWord("unlimited", nil))
    reader.read("min_footprint", into: &rules.minFootprint, as: .size)
    reader.read(
      "after", into: &rules.after,
      as: Converter.duration.map(Optional.some).orWord("never", nil))
    reader.read(
      "at_once_up_to", into: &rules.atOnceUpTo,
      as: Converter.size.map(Optional.some).orWord("never", nil))
    reader.read("only_if_faster_than_relaunch", into: &rules.onlyIfFasterThanRelaunch, as: .boolean)
    reader.read("resume", into: &rules.resume, as: .choice)
    reader.read("cooldown", into: &rules.cooldown, as: .duration)
    reader.read(
      "demote_after", into: &rules.demoteAfter,
      as: Converter.duration.map(Optional.some).orWord("never", nil))
    order(of: reader, &rules.order)
    machineWide("disk", of: reader) { reader, key in
      reader.section(key) { disk in
        disk.read("budget", into: &rules.disk.budget, as: .size)
        disk.read("min_free", into: &rules.disk.minFreePercent, as: .percent)
        disk.read("daily_writes", into: &rules.disk.dailyWrites, as: .size)
      }
    }
    reader.read("overlay", into: &rules.overlay, as: .boolean)
    reader.section("compression") {
      $0.read("level", into: &rules.compressionLevel, as: .integer(-7...19))
    }
    reader.read("durability", into: &rules.durability, as: .choice)
    reader.read("encrypt", into: &rules.encrypt, as: .boolean)
    reader.read("drop_file_pages", into: &rules.dropFilePages, as: .boolean)
  }

  private func watchdog(_ reader: MappingReader, _ rules: inout WatchdogRules) {
    reader.read("launch", into: &rules.launch, as: .duration.notZero)
    reader.read("answer", into: &rules.answer, as: .duration.notZero)
    reader.read("max_extension", into: &rules.maxExtension, as: .duration)
    reader.read("on_timeout", into: &rules.onTimeout, as: .choice)
  }

  private func terminate(_ reader: MappingReader, _ rules: inout TerminationRules) {
    reader.read("grace", into: &rules.grace, as: .duration)
    machineWide("settle", of: reader) { $0.read($1, into: &rules.settle, as: .duration) }
    order(of: reader, &rules.order)
    reader.read("for_memory", into: &rules.forMemory, as: .boolean)
    reader.read(
      "ask", into: &rules.ask,
      as: Converter.duration.notZero.map(Optional.some).orWord("never", nil))
  }

  private func order(of reader: MappingReader, _ order: inout [TerminationRules.Criterion]) {
    machineWide("order", of: reader) { reader, key in
      guard let items = reader.list(key, of: Converter<TerminationRules.Criterion>.choice) else {
        return
      }
      order = reader.unique(items.map { ($0.value, $0.value.rawValue, $0.node) })
    }
  }

  /// Reads a key that only the machine's policy may hold.
  private func machineWide(
    _ key: String, of reader: MappingReader, _ body: (MappingReader, String) -> Void
  ) {
    guard scope == .worker else { return body(reader, key) }
    refuse(
      key, of: reader, "applies to all workers together and can't be set for one",
      suggestion: "put it under `policy_overrides` at the top of the file")
  }

  private func refuse(
    _ key: String, of reader: MappingReader, _ why: String, suggestion: String? = nil
  ) {
    guard let position = reader.refused(key) else { return }
    reader.sink.error(at: position, "`\(key)` \(why)", suggestion: suggestion)
  }
}

extension Converter where Value == String {
  /// The value of `extends`. Its path is relative to the file that has it.
  fileprivate static var extended: Converter {
    .text("the name of a policy, or the path of a policy file").checked { text in
      text.isEmpty ? .wrongKind : homeProblem(text)
    }
  }
}

extension Converter where Value == LifecyclePolicy.MemoryBudget {
  static var budget: Converter {
    Converter<ByteCount>.size.notZero.map { .device($0) }.orWord("host", .host)
  }
}
