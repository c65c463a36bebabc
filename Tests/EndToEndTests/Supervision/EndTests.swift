import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("The end of a daemon") struct EndTests {
  enum Way: String, CaseIterable { case signal, verb }

  static func configuration(_ scratch: Scratch) throws -> String {
    let polite = """
      import pathlib, signal, sys, time
      def end(*_):
        pathlib.Path(sys.argv[1]).write_text("saved")
        sys.exit(0)
      signal.signal(signal.SIGTERM, end)
      print("ready", flush=True)
      # Not pause(): a signal that comes just before it would wait for the next one.
      while True: time.sleep(0.1)
      """
    let script = try scratch.write("polite.py", polite)
    let workers = ["runs", "sleeps", "winters"].map { name in
      """
        \(name):
          command: [\(TestMachine.python), \(script), \(scratch.path)/\(name)]
          readiness: { log_line: ready }

      """
    }
    return """
      policy_overrides:
        background: { suspend_after: 1h }
        hibernate: { after: never }
        foreground: { max: 3 }
        terminate: { grace: 60s }
      workers:

      """ + workers.joined()
  }

  @Test(
    "A daemon that ends lets every worker save its work, and leaves nothing behind",
    arguments: Way.allCases, Nightly.one(of: Setting.ofTestUser))
  func graceful(way: Way, setting: Setting) throws {
    let scratch = try Scratch()
    let daemon = try TestDaemon(try Self.configuration(scratch), setting: setting)
    for name in ["runs", "sleeps", "winters"] { try daemon.wait(name, toBe: "foreground") }
    try daemon.done("suspend", "sleeps")
    try daemon.done("hibernate", "winters")
    let pids = try daemon.ask(.ps).workers?.compactMap(\.pid) ?? []
    #expect(pids.count == 3)
    let group = daemon.record("runs")["cgroup"]

    switch way {
    case .signal: kill(daemon.pid, SIGTERM)
    case .verb: #expect(try daemon.done("shutdown").contains("all workers have ended"))
    }
    #expect(try daemon.waitForEnd() == 0, "\(daemon.logText)")
    for name in ["runs", "sleeps", "winters"] {
      #expect((try? readText("\(scratch.path)/\(name)")) == "saved", "\(name): \(daemon.logText)")
    }
    #expect(pids.allSatisfy { kill($0, 0) != 0 })
    #expect(access(daemon.socket, F_OK) != 0)
    #expect(access(daemon.socket + ".workers", F_OK) != 0)
    for name in ["images", "workers"] {
      #expect(try listDirectory("\(daemon.state)/\(name)").isEmpty)
    }
    if let group {
      let parent = "/" + group.split(separator: "/").dropLast().joined(separator: "/")
      #expect(access(parent, F_OK) != 0)
    }
  }
}

@Suite("The daemon's own memory") struct GrowthTests {
  @Test("The daemon's memory and descriptors don't grow over many rounds of suspend and wake")
  func growth() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
      workers: { sleeper: { command: sleep 650 } }
      """)
    try daemon.wait("sleeper", toBe: "foreground")
    func rounds(_ count: Int) throws {
      for _ in 0..<count {
        #expect(try daemon.ask(.suspend, "sleeper").result == .done)
        #expect(try daemon.ask(.wake, "sleeper").result == .done)
      }
    }
    // The first rounds fill caches, and fault code in.
    try rounds(20)
    let descriptors = try daemon.descriptorCount()
    let before = Int64(try Footprint.measure([daemon.pid]).footprint)
    try rounds(Nightly.rounds(60, of: 200))
    let after = Int64(try Footprint.measure([daemon.pid]).footprint)
    #expect(after - before < 3 << 20, "\(before) → \(after)")
    #expect(try eventually { try daemon.descriptorCount() <= descriptors })
  }
}
