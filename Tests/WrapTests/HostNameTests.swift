import Testing

@testable import Wrap

@Suite("The name of what started a wrapper") struct HostNameTests {
  @Test(arguments: [
    (["/usr/bin/nvim", "a.c"], "nvim"), (["-bash"], "bash"), (["claude"], "claude"),
    (["claude --continue"], "claude"), (["/usr/share/code/code", "--type=utility"], "code"),
    (["node", "/usr/bin/gemini"], "gemini"),
    (["/usr/bin/node", "--max-old-space-size=99", "/n/@x/agent-code/dist/cli.js"], "agent-code"),
    (["python3.11", "-m", "jupyterlab"], "jupyterlab"),
    (["/opt/py/bin/python3", "/opt/py/bin/jupyter-lab", "--port=1"], "jupyter-lab"),
    (["python3"], "python3"), (["node", "/app/index.js"], "node"), (["pythonista"], "pythonista"),
  ])
  func `It is the program's, or the script's`(arguments: [String], name: String) {
    #expect(HostName.name(of: arguments) == name)
  }

  @Test func `A process without arguments has none`() {
    #expect(HostName.name(of: []) == nil)
    #expect(HostName.name(of: [""]) == nil)
  }

  @Test func `Shells and other starters are passed over`() {
    let processes: [Int32: HostName.Ancestor] = [
      40: .init(arguments: ["sh", "-c", "dormouse wrap -- x"], parent: 30),
      30: .init(arguments: ["node", "/n/npm/bin/npx-cli.js", "x"], parent: 20),
      20: .init(arguments: ["/usr/bin/claude"], parent: 10),
      10: .init(arguments: ["-bash"], parent: 1),
    ]
    let host = HostName { processes[$0] }
    #expect(host.name(from: 40) == "claude")
    #expect(host.name(from: 10) == nil, "only a shell")
    #expect(host.name(from: 5) == nil, "it has ended")
  }
}
