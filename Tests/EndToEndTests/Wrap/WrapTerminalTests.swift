import Glibc
import TestSupport
import Testing

/// Each drives the wrapper from an interactive bash on a terminal; see
/// `Tests/Fixtures/terminal_jobs.py`.
@Suite("dormouse wrap in a terminal") struct WrapTerminalTests {
  private func play(_ scenario: String, _ setting: Setting) throws {
    let scratch = try Scratch()
    let log = "\(scratch.path)/log"
    let policy = try scratch.write("jobs.yaml", Self.policy)
    var person = Command(
      arguments: [
        TestMachine.python, TestMachine.fixture("terminal_jobs.py"), scenario,
        TestMachine.executable, "wrap", "--log", log, "--policy", policy,
      ] + WrapHost.hasty + ["--"])
    person.environment["WRAP_LOG"] = log
    person.environment["XDG_STATE_HOME"] = "\(scratch.path)/state"
    person.environment["XDG_RUNTIME_DIR"] = "\(scratch.path)/run"
    if setting != .frozen { person.environment["DORMOUSE_CGROUP"] = "/proc/nowhere" }
    let result = try person.run(in: scratch, limit: .seconds(400))
    #expect(result.code == 0, "\(result)")
  }

  /// Each scenario wakes its program soon after each sleep: its idle times mustn't double.
  private static let policy = """
    name: jobs
    foreground: { mode: activity, max: unlimited }
    hibernate: { max_footprint: unlimited, only_if_faster_than_relaunch: false, cooldown: 0s }
    early_wake: { max_idle: never }

    """

  /// An ordinary user's case is that without cgroups.
  static let settings = Setting.ofTestUser

  @Test(
    "The first key, Ctrl-C, a new size and Ctrl-D wake a hibernated program, and each arrives once",
    arguments: Nightly.one(of: settings))
  func keys(setting: Setting) throws { try play("keys", setting) }

  @Test(
    "A line that the kernel edits wakes a hibernated program at its end",
    arguments: Nightly.one(of: settings))
  func cooked(setting: Setting) throws { try play("cooked", setting) }

  @Test(
    "Ctrl-Z, jobs, fg and kill -9 work on an awake and on a hibernated program",
    arguments: Nightly.one(of: settings)
  )
  func stop(setting: Setting) throws { try play("stop", setting) }

  @Test("Ctrl-Z soon after fg stops the job again", arguments: Nightly.one(of: settings))
  func again(setting: Setting) throws { try play("again", setting) }

  @Test(
    "A process whose parent has ended sleeps with the program and ends with it",
    arguments: Nightly.one(of: settings)
  )
  func orphans(setting: Setting) throws { try play("orphans", setting) }

  @Test(
    "SIGKILL to wrapper and program leaves no child stopped or without memory",
    arguments: Nightly.one(of: settings))
  func killed(setting: Setting) throws { try play("killed", setting) }

  @Test(
    "A program that hibernates in the background wakes for fg", arguments: Nightly.one(of: settings)
  )
  func background(setting: Setting) throws { try play("background", setting) }

  @Test(
    "A program gets a signal to its job once, and one to the wrapper alone too",
    arguments: Nightly.one(of: settings))
  func once(setting: Setting) throws { try play("once", setting) }

  @Test(
    "A shell and its jobs hibernate together, and its job control works",
    arguments: Nightly.one(of: settings))
  func shell(setting: Setting) throws { try play("shell", setting) }

  @Test(
    "Ctrl-Z, fg and Ctrl-D work on a wrapped job of a hibernated shell",
    arguments: Nightly.one(of: settings))
  func inner(setting: Setting) throws { try play("inner", setting) }

  @Test("A terminal that hangs up ends a hibernated program", arguments: Nightly.one(of: settings))
  func hangup(setting: Setting) throws { try play("hangup", setting) }

  @Test(
    "A wrapped program in a pipeline hibernates and wakes", arguments: Nightly.one(of: settings))
  func pipeline(setting: Setting) throws { try play("pipeline", setting) }

  @Test(
    "Ctrl-C ends a script together with the hibernated program that it runs",
    arguments: Nightly.one(of: settings))
  func script(setting: Setting) throws { try play("script", setting) }
}
