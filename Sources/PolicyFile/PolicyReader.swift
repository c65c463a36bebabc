import Policy
import Yams

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

  func read(_ top: MappingReader, over base: LifecyclePolicy) -> LifecyclePolicy {
    var policy = base
    if scope == .policy {
      top.read("name", into: &policy.name, as: .name("a name such as `my-policy`"))
    } else {
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
    top.section("terminate") { terminate($0, &policy.terminate) }
    machineWide("ladder", of: top) { top, key in
      top.section(key) { LadderReader(reader: $0).read(&policy.ladder) }
    }
    top.finish()
    PolicyChecks(policy: policy, reader: top, whole: scope == .policy).run()
    return policy
  }

  private func foreground(_ reader: MappingReader, _ rules: inout ForegroundRules) {
    machineWide("by", of: reader) { $0.read($1, into: &rules.by, as: .choice) }
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
    reader.read("only_if_faster_than_relaunch", into: &rules.onlyIfFasterThanRelaunch, as: .boolean)
    reader.read("resume", into: &rules.resume, as: .choice)
    reader.read("cooldown", into: &rules.cooldown, as: .duration)
    machineWide("disk", of: reader) { reader, key in
      reader.section(key) { disk in
        disk.read("budget", into: &rules.disk.budget, as: .size)
        disk.read("min_free", into: &rules.disk.minFreePercent, as: .percent)
        disk.read("daily_writes", into: &rules.disk.dailyWrites, as: .size)
      }
    }
    reader.section("compression") {
      $0.read("level", into: &rules.compressionLevel, as: .integer(-7...19))
    }
  }

  private func watchdog(_ reader: MappingReader, _ rules: inout WatchdogRules) {
    reader.read("launch", into: &rules.launch, as: .duration.notZero)
    reader.read("answer", into: &rules.answer, as: .duration.notZero)
    reader.read("on_miss", into: &rules.onMiss, as: .choice)
  }

  private func terminate(_ reader: MappingReader, _ rules: inout TerminationRules) {
    reader.read("grace", into: &rules.grace, as: .duration)
    machineWide("settle", of: reader) { $0.read($1, into: &rules.settle, as: .duration) }
    machineWide("order", of: reader) { reader, key in
      guard let items = reader.list(key, of: .criterion) else { return }
      rules.order = reader.unique(items.map { ($0.value, $0.value.rawValue, $0.node) })
    }
  }

  /// Reads a key that only the machine's policy may hold.
  private func machineWide(
    _ key: String, of reader: MappingReader, _ body: (MappingReader, String) -> Void
  ) {
    guard scope == .worker else { return body(reader, key) }
    refuse(
      key, of: reader, "holds for all workers together, and can't be set for one",
      suggestion: "put it under `policy_overrides` at the top of the file")
  }

  private func refuse(
    _ key: String, of reader: MappingReader, _ why: String, suggestion: String? = nil
  ) {
    guard let position = reader.refused(key) else { return }
    reader.sink.error(at: position, "`\(key)` \(why)", suggestion: suggestion)
  }
}

extension Converter where Value == LifecyclePolicy.MemoryBudget {
  static var budget: Converter {
    Converter<ByteCount>.size.notZero.map { .device($0) }.orWord("host", .host)
  }
}

extension Converter where Value == TerminationRules.Criterion {
  fileprivate static var criterion: Converter {
    let known = Converter.choice
    return Converter(expects: known.expects) { node in
      guard node.scalar?.string != "regret" else {
        return .failure(Problem(message: "can't be by `regret`: not in this version yet"))
      }
      return known.convert(node)
    }
  }
}
