import TestSupport
import Testing

@testable import PolicyFile

@Suite struct `Files of variables` {
  @Test func `The key environment overrides the variables of env_file`() throws {
    let directory = try Scratch([
      "dormouse.yaml": """
      workers:
        w:
          command: [run, "${PORT}", "${NAME}"]
          env_file: [a.env, "${B:-b}.env"]
          environment: { PORT: 1 }
      """,
      "a.env": """
      # comment
      PORT=80 # another
      export NAME = "two\\nlines \\"quoted\\" \\$HOME"
      RAW='$HOME \\n'  # behind
      EMPTY=
      URL=http://host/#anchor

      """,
      "b.env": "RAW=other\r\nLAST=yes",
    ])
    let result = directory.load()
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let worker = try #require(result.value?.workers.first)
    #expect(
      worker.environment == [
        "PORT": "1", "NAME": "two\nlines \"quoted\" $HOME", "RAW": "other", "EMPTY": "",
        "URL": "http://host/#anchor", "LAST": "yes",
      ])
    #expect(worker.command == ["run", "1", "two\nlines \"quoted\" $HOME"])
  }

  @Test func `A quoted value may have several lines`() throws {
    let directory = try Scratch([
      "dormouse.yaml": "workers: { w: { command: run, env_file: a.env } }",
      "a.env": "KEY=\"-----BEGIN-----\n  a\\\"b \n#c\nEND\" # behind\nRAW='\n\\n'\r\nLAST=1\n",
    ])
    let result = directory.load()
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let worker = try #require(result.value?.workers.first)
    #expect(
      worker.environment == [
        "KEY": "-----BEGIN-----\n  a\"b \n#c\nEND", "RAW": "\n\\n", "LAST": "1",
      ])
  }

  @Test func `Errors in a file of variables are reported with that file's name and line`() throws {
    let directory = try Scratch([
      "dormouse.yaml": "workers: { w: { command: run, env_file: a.env } }",
      "a.env": "GOOD=1\n  just words\n=x\nOPEN=\"a\nBEHIND='a' b\n",
    ])
    let result = directory.load()
    #expect(result.value == nil)
    #expect(result.errors.allSatisfy { $0.file.hasSuffix("/a.env") })
    #expect(result.errors.map(\.position?.line) == [2, 3, 4, 5])
    #expect(result.errors.first?.message == "is not `KEY=VALUE`")
  }
}
