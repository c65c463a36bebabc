import Glibc
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

  @Test func `The env_file of a worker with a user is left to its launch`() throws {
    let directory = try Scratch([
      "dormouse.yaml": """
      workers:
        w: { command: run, user: daemon, env_file: [a.env, none.env], environment: { B: 1 } }
      """,
      "a.env": "A=1\nwrong\n",
    ])
    let result = directory.load()
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let worker = try #require(result.value?.workers.first)
    #expect(worker.environment == ["B": "1"])
    #expect(worker.environmentFiles == ["a.env", "none.env"].map { "\(directory.path)/\($0)" })
    try directory.write(
      "dormouse.yaml", "workers: { w: { command: [run, '${A}'], user: daemon, env_file: a.env } }")
    #expect(
      directory.load().errors.first?.message.contains("`env_file` is read when it is launched")
        == true)
  }

  @Test
  func `Files of variables that don't answer are left to the launch, all of that worker`() throws {
    let directory = try Scratch([
      "dormouse.yaml": """
      workers:
        w: { command: run, env_file: [a.env, b/b.env], environment: { C: 1 } }
        x: { command: run, env_file: a.env }
      """,
      "a.env": "A=1\n",
    ])
    let hung = "\(directory.path)/b"
    let result = ConfigurationFile.load(
      path: directory.path, library: .builtIn, environment: [:],
      wait: { subject, work in
        if subject == hung { return false }
        work()
        return true
      })
    let workers = try #require(result.value?.workers)
    #expect(workers.map(\.environment) == [["C": "1"], ["A": "1"]])
    #expect(
      workers.first?.environmentFiles == ["a.env", "b/b.env"].map { "\(directory.path)/\($0)" })
    #expect(workers.last?.environmentFiles == [])
    #expect(result.errors.isEmpty && result.rendered.contains("its file system doesn't answer"))
  }

  @Test func `A file of variables that isn't a regular file, or is too large, is refused`() throws {
    let scratch = try Scratch(["large": String(repeating: "A=1\n", count: 1 << 19), "good": "A=1"])
    #expect(EnvironmentFile.read("\(scratch.path)/good").value == ["A": "1"])
    let fifo = scratch.uniquePath("fifo")
    #expect(mkfifo(fifo, 0o600) == 0)
    for (path, reason) in [
      ("\(scratch.path)/large", "larger than 1MB"), ("/dev/zero", "isn't a regular file"),
      (fifo, "isn't a regular file"), (scratch.path, "isn't a regular file"),
    ] {
      let result = EnvironmentFile.read(path)
      #expect(
        result.value == nil && result.rendered.contains(reason), "\(path): \(result.rendered)")
    }
  }
}
