import JSONLines
import Lifecycle
import Policy

extension JSON {
  /// The form of a directive in the journal. `d` names it, and `why` is its reason in words beside
  /// the reason as data. It is only compared and shown, so nothing reads it back.
  public init(directive: Directive) throws {
    var fields = FieldWriter()
    try fields.set(directive)
    self = fields.object
  }
}

extension FieldWriter {
  /// The switch has no default on purpose: a new directive doesn't compile until it can be written.
  fileprivate mutating func set(_ directive: Directive) throws {
    switch directive {
    case .launch(let worker): set("launch", of: worker)
    case .shed(let worker, let kind, let until):
      set("shed", of: worker)
      set("kind", kind.rawValue)
      set("until", until)
    case .finishShed(let worker): set("finishShed", of: worker)
    case .expireTask(let worker, let task):
      set("expireTask", of: worker)
      set("task", task)
    case .suspend(let worker): set("suspend", of: worker)
    case .hibernate(let worker): set("hibernate", of: worker)
    case .resume(let worker): set("resume", of: worker)
    case .terminate(let worker): set("terminate", of: worker)
    case .abort(let worker): set("abort", of: worker)
    case .checkWatchdog(let worker): set("checkWatchdog", of: worker)
    case .kill(let worker): set("kill", of: worker)
    case .measure(let worker): set("measure", of: worker)
    case .inspect(let worker): set("inspect", of: worker)
    case .answer(let id, let answer):
      set("d", "answer")
      set("id", Int64(bitPattern: id))
      set("code", answer.code.rawValue)
      set("text", answer.text)
    case .transition(let transition):
      set("transition", of: transition.worker)
      set("from", transition.from.rawValue)
      set("to", transition.to.rawValue)
      set("why", transition.cause.sentence)
      try set("cause", coded: transition.cause)
    case .pressureChanged(let from, let to, let reason):
      set("d", "pressureChanged")
      set("from", from.name)
      set("to", to.name)
      set("why", reason)
    case .report(let report):
      set("d", "report")
      try set("report", coded: report)
    case .checkSafePoint(let worker): set("checkSafePoint", of: worker)
    case .purge(let worker): set("purge", of: worker)
    case .trim(let worker): set("trim", of: worker)
    case .fill(let worker): set("fill", of: worker)
    case .watchdogMissed(let worker, let what):
      set("watchdogMissed", of: worker)
      set("why", what)
    case .wouldHave(let worker, let what):
      set("wouldHave", of: worker)
      set("why", what)
    case .willTerminate, .willNotTerminate, .overLimit, .leakSuspected, .protectedLeft,
      .terminatesNone:
      try setReports(directive)
    }
  }

  /// Writes the directives that report footprints and terminations.
  private mutating func setReports(_ directive: Directive) throws {
    switch directive {
    case .willTerminate(let worker, let notice):
      set("willTerminate", of: worker)
      try set("notice", coded: notice)
    case .willNotTerminate(let worker, let reason):
      set("willNotTerminate", of: worker)
      set("why", reason)
    case .overLimit(let worker, let excess, let consequence):
      set("overLimit", of: worker)
      try set("excess", coded: excess)
      set("why", "\(excess.sentence): \(consequence)")
    case .leakSuspected(let worker, let leak):
      set("leakSuspected", of: worker)
      try set("leak", coded: leak)
      set("why", leak.sentence)
    case .protectedLeft(let workers, let level):
      set("d", "protectedLeft")
      try set("workers", coded: workers.map(\.name))
      set("level", level.name)
    case .terminatesNone(let vain):
      set("d", "terminatesNone")
      try set("vain", coded: vain)
      set("why", vain.sentence)
    default: break
    }
  }

  private mutating func set(_ name: String, of worker: WorkerID) {
    set("d", name)
    set(worker)
  }
}
