import Testing

@testable import Integrate

@Suite("The arguments that wrap inserts before a command") struct WrapPrefixTests {
  @Test(arguments: [
    ("files", "files"), ("my server", "my-server"), ("..x", "x"), ("é", nil),
    ("a/b@1.2", "a-b-1.2"),
    (String(repeating: "n", count: 50), String(repeating: "n", count: 40)), ("", nil),
  ])
  func `A server's name is written so that wrap accepts it`(name: String, label: String?) {
    #expect(WrapPrefix.label(name) == label)
  }

  @Test func `Jupyter's kernels wake for their timers, unless other ones are given`() {
    let wrapPrefix = WrapPrefix(program: "d", options: ["--idle-after", "1h"], addsOptions: true)
    let suited = ["--wake-for-timers", "15s", "--idle-after", "5m", "--idle-after", "1h"]
    // If an option is given twice, the last one counts.
    #expect(wrapPrefix.suiting(.jupyter).options == suited)
    let own = WrapPrefix(program: "d", options: ["--wake-for-timers=1h"], addsOptions: true)
    #expect(own.suiting(.jupyter) == own)
    let plain = WrapPrefix(program: "d")
    #expect(plain.suiting(.jupyter) == plain)
  }

  @Test func `Servers of other hosts end with their host, as those without this option are known`()
  {
    let wrapPrefix = WrapPrefix(program: "d", options: ["--idle-after", "1m"], addsOptions: true)
    let suited = wrapPrefix.suiting(.cursor)
    #expect(suited.options == ["--end-with-host", "--idle-after", "1m"])
    for earlier in [wrapPrefix.options, wrapPrefix.options + ["--name", "x"], suited.options] {
      #expect(suited.matches(earlier))
    }
    #expect(!suited.matches(["--idle-after", "2m"]))
    #expect(IntegratedHost.emacs.snippet(wrapPrefix)?.contains("--end-with-host") == true)
  }

  @Test func `A name in the given options stays the only one`() {
    let wrapPrefix = WrapPrefix(program: "d", options: ["--name=x"], addsOptions: true)
    #expect(wrapPrefix.named("files", command: ["npx"]) == wrapPrefix)
  }
}
