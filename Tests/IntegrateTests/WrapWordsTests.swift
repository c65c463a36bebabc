import Testing

@testable import Integrate

@Suite("The words before a command") struct WrapWordsTests {
  @Test(arguments: [
    ("files", "files"), ("my server", "my-server"), ("..x", "x"), ("é", nil),
    ("a/b@1.2", "a-b-1.2"),
    (String(repeating: "n", count: 50), String(repeating: "n", count: 40)), ("", nil),
  ])
  func `A server's name is written so that wrap takes it`(name: String, label: String?) {
    #expect(WrapWords.label(name) == label)
  }

  @Test func `Jupyter's kernels have five minutes for a silent cell, unless another time is given`()
  {
    let words = WrapWords(program: "d", options: ["--hibernate-after", "1m"], addsOptions: true)
    #expect(
      words.suiting(.jupyter).options == ["--idle-after", "5m", "--hibernate-after", "1m"])
    #expect(words.suiting(.cursor) == words)
    let own = WrapWords(program: "d", options: ["--idle-after=1h"], addsOptions: true)
    #expect(own.suiting(.jupyter) == own)
    let plain = WrapWords(program: "d")
    #expect(plain.suiting(.jupyter) == plain)
  }

  @Test func `A name in the given options stays the only one`() {
    let words = WrapWords(program: "d", options: ["--name=x"], addsOptions: true)
    #expect(words.of("files", command: ["npx"]) == words)
  }
}
