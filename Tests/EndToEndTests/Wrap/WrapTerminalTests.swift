import Glibc
import TestSupport
import Testing

/// Each drives the wrapper from an interactive bash on a terminal; see
/// `Tests/Fixtures/terminal_jobs.py`.
@Suite("dormouse wrap in a terminal") struct WrapTerminalTests {
  /// The names are those of the fixture.
  enum Scenario: String, CaseIterable, CustomTestStringConvertible {
    case keys, cooked, stop, again, orphans, killed, background, once, shell, inner, hangup
    case pipeline, script

    var testDescription: String {
      switch self {
      case .keys:
        "The first key, Ctrl-C, a new size and Ctrl-D wake a hibernated program; each arrives once"
      case .cooked: "A line that the kernel edits wakes a hibernated program at its end"
      case .stop: "Ctrl-Z, jobs, fg and kill -9 work on an awake and on a hibernated program"
      case .again: "Ctrl-Z soon after fg stops the job again"
      case .orphans: "A process whose parent has ended sleeps with the program and ends with it"
      case .killed: "SIGKILL to wrapper and program leaves no child stopped or without memory"
      case .background: "A program that hibernates in the background wakes for fg"
      case .once: "A program gets a signal to its job once, and one to the wrapper alone too"
      case .shell: "A shell and its jobs hibernate together, and its job control works"
      case .inner: "Ctrl-Z, fg and Ctrl-D work on a wrapped job of a hibernated shell"
      case .hangup: "A terminal that hangs up ends a hibernated program"
      case .pipeline: "A wrapped program in a pipeline hibernates and wakes"
      case .script: "Ctrl-C ends a script together with the hibernated program that it runs"
      }
    }
  }

  /// Each scenario wakes its program soon after each sleep: its idle times mustn't double.
  private static let policy = """
    name: jobs
    foreground: { mode: activity, max: unlimited }
    hibernate: { max_footprint: unlimited, only_if_faster_than_relaunch: false, cooldown: 0s }
    early_wake: { max_idle: never }

    """

  /// An ordinary user's case is that without cgroups.
  static let cases: [(Scenario, Setting)] = Nightly.oneOfEach(
    Scenario.allCases.map { scenario in Setting.ofTestUser.map { (scenario, $0) } })

  @Test("A wrapped program on a terminal behaves as it does without a wrapper", arguments: cases)
  func play(scenario: Scenario, setting: Setting) throws {
    let scratch = try Scratch()
    let log = "\(scratch.path)/log"
    let policy = try scratch.write("jobs.yaml", Self.policy)
    var person = Command(
      arguments: [
        TestMachine.python, TestMachine.fixture("terminal_jobs.py"), scenario.rawValue,
        TestMachine.executable, "wrap", "--log", log, "--policy", policy,
      ] + WrapHost.hasty + ["--"])
    person.environment["WRAP_LOG"] = log
    person.environment["XDG_STATE_HOME"] = "\(scratch.path)/state"
    person.environment["XDG_RUNTIME_DIR"] = "\(scratch.path)/run"
    if setting != .frozen { person.environment["DORMOUSE_CGROUP"] = "/proc/nowhere" }
    let result = try person.run(in: scratch, limit: .seconds(400))
    #expect(result.code == 0, "\(result)")
  }
}
