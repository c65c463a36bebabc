import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite struct SpawnTests {
  private func request(
    path: String = "/bin/sh", arguments: [String] = ["sh", "-c", ":"], directory: String = "/",
    environment: [String: String] = [:], output: Int32 = STDOUT_FILENO, cgroup: Int32? = nil
  ) -> SpawnRequest {
    SpawnRequest(
      path: path, arguments: arguments, environment: environment, directory: directory,
      input: STDIN_FILENO, output: output, error: STDERR_FILENO, cgroup: cgroup)
  }

  private func failure(_ request: SpawnRequest) -> SpawnError? {
    do throws(SpawnError) {
      let process = try spawn(request)
      kill(process.pid, SIGKILL)
      waitpid(process.pid, nil, 0)
      return nil
    } catch { return error }
  }

  @Test func `Each step of a start has its own sentence for a failure`() throws {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let missing = failure(request(path: "/x/y"))
    #expect(missing?.step == .exec)
    #expect(missing?.description == "can't start /x/y: No such file or directory")

    let notExecutable = failure(request(path: "/etc/passwd"))
    #expect(notExecutable?.description == "can't start /etc/passwd: Permission denied")

    let directory = failure(request(directory: "/nowhere"))
    #expect(directory?.step == .directory)
    #expect(
      directory?.description
        == "can't start /bin/sh: can't enter its directory /nowhere: No such file or directory")

    let descriptors = failure(request(output: 9999))
    #expect(descriptors?.step == .descriptors)

    // This descriptor isn't a cgroup.
    let cgroup = failure(request(cgroup: null.raw))
    #expect(cgroup?.step == .fork)
    #expect(cgroup?.mayBeTheCgroup == true)
    #expect(cgroup?.description.contains("cgroup") == true)

    for bad in [
      request(arguments: ["a\0b"]), request(environment: ["a=b": ""]),
      request(environment: ["": "x"]), request(environment: ["a": "\0"]),
    ] {
      #expect(failure(bad)?.step == .prepare)
    }
  }

  @Test func `The error for a script without its interpreter says so`() throws {
    let path = "/tmp/dormouse-test-script-\(getpid())"
    defer { unlink(path) }
    try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o700).writeAll("#!/no/such/thing\n")
    #expect(failure(request(path: path))?.description.contains("interpreter") == true)
    try Descriptor.open(path, O_WRONLY | O_TRUNC).writeAll("neither\n")
    #expect(failure(request(path: path))?.code == ENOEXEC)
  }

  @Test func `No descriptor of the parent leaks into a started child`() throws {
    // The file is opened without O_CLOEXEC, as a careless library would do it.
    let null = try Descriptor.open("/dev/null")
    let leaky = dup(null.raw)
    defer { close(leaky) }
    // First check that this way of counting detects a leak.
    #expect(try listNumbers("/proc/self/fd").contains(leaky))
    let child = try TestChild(
      "python3", "-c", "import os; print(sorted(os.listdir('/proc/self/fd')))")
    // The fourth descriptor is that of the directory that is being listed.
    #expect(try child.line() == "['0', '1', '2', '3']")
  }

  @Test func `A started child has its own session, default signals and the given environment`()
    throws
  {
    // No other test uses this signal: those that wait for a thread of this process are discarded.
    signal(SIGVTALRM, SIG_IGN)
    defer { signal(SIGVTALRM, SIG_DFL) }
    let child = try TestChild(
      "python3", "-c", "import os; print(os.getsid(0), flush=True); input()")
    #expect(try child.line() == "\(child.pid)")
    let quiet = try spawn(
      request(arguments: ["sh", "-c", "kill -STOP $$"], environment: ["A": "1"]))
    defer {
      kill(quiet.pid, SIGKILL)
      waitpid(quiet.pid, nil, 0)
    }
    #expect(try eventually { try ProcessStat.read(quiet.pid).state == .stopped })
    let status = try ProcessStatus.read(quiet.pid)
    #expect(!ProcessStatus.contains(status.ignored, SIGVTALRM))
    #expect(status.blocked == 0)
    #expect(try readText("/proc/\(quiet.pid)/environ").split(separator: "\0").contains("A=1"))
  }

  @Test func `Programs are looked up as in a shell, without the current directory`() {
    #expect(resolveExecutable("sh", path: "/nowhere:/bin") == "/bin/sh")
    #expect(resolveExecutable("sh", path: "/nowhere") == nil)
    #expect(resolveExecutable("./sh", path: "") == "./sh")
    #expect(resolveExecutable("", path: "/bin") == nil)
    // A directory and a plain file aren't programs.
    #expect(resolveExecutable("fs", path: "/proc/sys") == nil)
    #expect(resolveExecutable("passwd", path: "/etc") == nil)
  }
}
