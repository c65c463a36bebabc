import Glibc
import Linux
import TestSupport
import Testing

/// An agent under a wrapper that starts helpers under wrappers, as `dormouse integrate` arranges
/// it.
@Suite("dormouse wrap in dormouse wrap") struct WrapInnerTests {
  private static func wrapping(_ command: [String], log: String) -> String {
    let arguments =
      [TestMachine.executable, "wrap", "--log", log] + WrapHost.hasty + ["--"] + command
    return #"{"command": [\#(arguments.map { "\"\($0)\"" }.joined(separator: ", "))]}"#
  }

  @Test(
    "A wrapped program and its wrapped helper hibernate separately, with their memory intact",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func bothHibernate(setting: Setting) throws {
    let host = try WrapHost(setting: setting)
    let log = host.scratch.uniquePath("helper.log")
    let sum = try host.ask("fill", #"{"megabytes": 12}"#)
    let helper = try Int32(host.ask("helper", Self.wrapping(WrapHost.server, log: log))) ?? 0
    #expect(helper > 0)
    let relayed = try host.ask("relay", #"{"method": "fill", "params": {"megabytes": 9}}"#)
    for round in 1...3 {
      try host.wait(toBe: "hibernated")
      let sleeps = try eventually {
        try readText(log).split(separator: "\n").last?.contains("→ hibernated") == true
      }
      try #require(sleeps, "round \(round): \((try? readText(log)) ?? "")")
      // The outer one isn't woken by the inner one's sleep.
      #expect(try host.status().state == "hibernated", "\(host.diagnostics)")
      #expect(try host.status().processes == 1)
      #expect(try host.ask("relay", #"{"method": "sum"}"#) == relayed)
      #expect(try host.ask("sum") == sum)
    }
    host.closeInput()
    #expect(try host.end() == .exited(7))
    #expect(try eventually { hasEnded(helper) && host.hasLeftNothing() })
  }

  @Test(
    "The end of a wrapped child wakes the wrapped program that started it",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func endOfChild(setting: Setting) throws {
    let host = try WrapHost(setting: setting)
    let log = host.scratch.uniquePath("child.log")
    try host.ask("fill", #"{"megabytes": 8}"#)
    let child =
      try Int32(host.ask("unheard", Self.wrapping(["sleep", "1000"], log: log))) ?? 0
    try #require(child > 0)
    #expect(try eventually { (try? readText(log))?.contains("→ suspended") == true })
    try host.wait(toBe: "hibernated")
    kill(child, SIGTERM)
    let wakes = try eventually {
      try readText(host.log).contains("woken by the end of a wrapped child")
    }
    #expect(wakes, "\(host.diagnostics)")
    #expect(try host.ask("echo", #"{"text": "here"}"#) == #""here""#)
    // The program doesn't reap it, and sleeps with that.
    try host.wait(toBe: "hibernated")
  }
}
