import Glibc
import Linux
import TestSupport
import Testing

/// Attacks on the service that lets ordinary users' daemons use userfaultfd (SECURITY.md).
@Suite(
  "The service for userfaultfd",
  .enabled(
    if: TestMachine.canBecomeNobody && access("/dev/userfaultfd", F_OK) == 0,
    "takes root, setpriv and /dev/userfaultfd"))
struct UserfaultServiceTests {
  private static let member = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
  private static let other = ["--reuid", "65533", "--regid", "65533", "--clear-groups"]

  private let service: UserfaultServiceProcess

  init() throws { service = try UserfaultServiceProcess() }

  private func client(_ user: [String], prefix: [String] = [], _ action: String...) -> Command {
    Command(
      arguments: ["setpriv"] + user + prefix + [
        TestMachine.python, service.client, service.path,
      ] + action)
  }

  private func lines(_ command: Command) throws -> [String] {
    let outcome = try command.run(in: service.scratch)
    #expect(outcome.error.isEmpty, "\(outcome)")
    return outcome.output.split(separator: "\n").map(String.init)
  }

  private func expectServes(
    _ user: [String] = ["--reuid", "0"], _ location: SourceLocation = #_sourceLocation
  ) throws {
    #expect(try lines(client(user, "ask", "device")) == ["done 1"], sourceLocation: location)
  }

  @Test(
    "A member of the group gets the device, and the events for forks, once for each userfaultfd")
  func use() throws {
    let text = try lines(client(Self.member, "use"))
    #expect(text.first == "device /dev/userfaultfd")
    let rounds = text.dropFirst().split { $0.hasPrefix("alone") }
    #expect(text.filter { $0.hasPrefix("alone: ") } == ["alone: Operation not permitted"].repeated)
    for (round, kind) in zip(rounds, ["negotiate", "negotiate tracking"]) {
      #expect(round.dropLast().elementsEqual(["\(kind): done", "again: failed 22"]), "\(text)")
      // The four events, and for the second the asynchronous write protection.
      let features = round.last.flatMap { UInt64($0, radix: 16) } ?? 0
      #expect(features & 0x4e == 0x4e && features & 0x8000 == (kind == "negotiate" ? 0 : 0x8000))
    }
  }

  @Test func `A user that isn't in the group can't connect`() throws {
    #expect(try lines(client(Self.other, "ask", "device")) == ["Permission denied 0"])
  }

  private static let inside = ["unshare", "--user", "--map-root-user"]

  private func canUnshare() throws -> Bool {
    try Command(arguments: ["setpriv"] + Self.member + Self.inside + ["true"])
      .run(in: service.scratch).code == 0
  }

  @Test func `Connections from other user namespaces use up those of no user`() throws {
    guard try canUnshare() else {
      return notTestedHere("no user namespaces for ordinary users")
    }
    let output = service.scratch.uniquePath("out")
    let silent = try client(Self.member, prefix: Self.inside, "silent", "40")
      .start(output: output, error: output)
    defer { kill(silent.pid, SIGKILL) }
    // The service serves four of them for 2 s.
    #expect(try eventually { try readText(output).contains("connected") })
    try expectServes(Self.member)
    #expect(try silent.wait(.seconds(60)) == 0)
  }

  @Test func `A member of the group in another user namespace is refused`() throws {
    guard try canUnshare() else {
      return notTestedHere("no user namespaces for ordinary users")
    }
    let inside = Self.inside
    #expect(
      try lines(client(Self.member, prefix: inside, "ask", "device")) == ["refused namespace 0"])
    try expectServes(Self.member)
  }

  @Test func `Descriptors that aren't one userfaultfd are refused, and change nothing`() throws {
    let directory = try service.openDirectory()
    let text = try lines(client(Self.member, "pass", directory))
    #expect(
      text == Array(repeating: "refused descriptor 0", count: 7)
        + Array(repeating: "refused request 0", count: 4) + ["done 0"])
  }

  @Test func `Packets that aren't requests are refused`() throws {
    let text = try lines(client(Self.member, "garbage"))
    #expect(text == Array(repeating: "refused request 0", count: 9))
    try expectServes(Self.member)
  }

  @Test("A user whose connections send nothing is refused more, and delays no other user")
  func silence() throws {
    let output = service.scratch.uniquePath("out")
    let silent = try client(Self.member, "silent", "40").start(output: output, error: output)
    defer { kill(silent.pid, SIGKILL) }
    #expect(try eventually { try readText(output).contains("refused busy") })
    try expectServes()
    // The service ends them after 2 s.
    #expect(try silent.wait(.seconds(60)) == 0)
    let ends = try readText(output).split(separator: "\n").dropFirst()
    #expect(ends.count == 40 && ends.contains("nothing"), "\(ends)")
    #expect(try eventually { try lines(client(Self.member, "ask", "device")) == ["done 1"] })
  }

  @Test(.enabled(if: HungFileSystem.isPossible, "takes /dev/fuse"))
  func `A file whose close never ends delays only its own user`() throws {
    let directory = try service.openDirectory()
    let fileSystem = try HungFileSystem(over: directory, opens: true)
    let output = service.scratch.uniquePath("out")
    let hung = try client(Self.member, "hang", "6", "\(directory)/file")
      .start(output: output, error: output)
    func text() throws -> [Substring] { try readText(output).split(separator: "\n") }
    #expect(try eventually { try text().count == 6 })
    let answers = try text()
    #expect(answers.prefix(4).allSatisfy { $0 == "refused descriptor" }, "\(answers)")
    // The end of the connection may overtake the answer.
    let refusals = ["refused busy", "Connection reset by peer", "Broken pipe"]
    #expect(answers.suffix(2).allSatisfy { refusals.contains(String($0)) }, "\(answers)")
    try expectServes()
    try expectServes(["--reuid", "65532", "--regid", "65534", "--clear-groups"])
    fileSystem.end()
    try hung.wait(.seconds(60))
    #expect(try eventually { try lines(client(Self.member, "ask", "device")) == ["done 1"] })
  }

  @Test("A flood of connections that end at each moment stops neither the service nor others")
  func flood() throws {
    let output = service.scratch.uniquePath("out")
    let floods = try (0..<2).map { _ in
      try client(Self.member, "flood", "4").start(output: output, error: output)
    }
    for _ in 0..<3 { #expect(try eventually { try serves() }) }
    for flood in floods {
      let code = try flood.wait(.seconds(60))
      let text = try readText(output)
      #expect(code == 0, "\(text)")
    }
    #expect(try eventually { try lines(client(Self.member, "ask", "device")) == ["done 1"] })
    #expect(try !service.hasEnded())
    // It keeps nothing of them.
    #expect(try eventually { try service.descriptorCount() <= 8 })
  }

  /// While the queue is full, a request is refused at once.
  private func serves() throws -> Bool {
    try lines(client(["--reuid", "0"], "ask", "device")) == ["done 1"]
  }

  @Test("A fork's descriptor appears in a program that reads a userfaultfd, and nothing else")
  func executedReader() throws {
    // The program reads 32 bytes from its input, as a setuid program may.
    let reader = """
      import os
      data = os.read(0, 32)
      number = int.from_bytes(data[8:12], "little")
      print(len(data), data[0], os.readlink("/proc/self/fd/%d" % number))
      try: os.write(number, b"x")
      except OSError as error: print(error.strerror)
      """
    let text = try lines(
      client(Self.member, "setuid", TestMachine.python, "-c", reader))
    #expect(text == ["done", "32 19 anon_inode:[userfaultfd]", "Bad file descriptor"], "\(text)")
  }
}

extension [String] {
  fileprivate var repeated: [String] { self + self }
}

/// `dormouse userfault-service`, without systemd, for the group 65534.
final class UserfaultServiceProcess {
  let scratch: Scratch
  let path: String
  /// A copy of the client that every user can read.
  let client: String
  let process: SpawnedProcess

  init() throws {
    scratch = try Scratch()
    chmod(scratch.path, 0o755)
    path = "\(scratch.path)/userfault.sock"
    client = try scratch.write(
      "userfault_client.py", readText(TestMachine.fixture("userfault_client.py")))
    chmod(client, 0o644)
    let log = "\(scratch.path)/service.log"
    process = try Command.dormouse(["userfault-service", "--listen", path, "--group", "65534"])
      .start(output: log, error: log)
    let listens = try eventually { [path] in
      var status = stat()
      return stat(path, &status) == 0 && status.st_mode & 0o777 == 0o660
    }
    guard listens else { throw TestFailure("no service: \(try readText(log))") }
  }

  /// A directory in which every user may make files.
  func openDirectory() throws -> String {
    let directory = "\(scratch.path)/open"
    mkdir(directory, 0o777)
    chmod(directory, 0o777)
    return directory
  }

  func hasEnded() throws -> Bool {
    try pollDescriptor(process.pidfd.raw, for: POLLIN, until: Deadline(in: .zero))
  }

  func descriptorCount() throws -> Int { try listDirectory("/proc/\(process.pid)/fd").count }

  deinit {
    kill(process.pid, SIGKILL)
    // Its children end by themselves.
    _ = try? process.wait(.seconds(60))
  }
}
