import Glibc
import Linux
import Policy
import TestSupport
import Testing

@testable import Supervision

@Suite struct ListenerTests {
  private func failure(_ socket: ListenSocket, _ account: Account? = nil) -> ListenError? {
    do throws(ListenError) {
      _ = try Listener.open(socket, for: account)
      return nil
    } catch { return error }
  }

  /// Opens a socket. The child that another test is forking may still have the one before.
  private func opened(_ socket: ListenSocket, for account: Account? = nil) throws -> Listener {
    var listener: Listener?
    _ = try eventually {
      listener = try? Listener.open(socket, for: account)
      return listener != nil
    }
    return try listener ?? Listener.open(socket, for: account)
  }

  @Test func `The socket file of a dead program is replaced, and any other file stays`() throws {
    let scratch = try Scratch()
    let path = "\(scratch.path)/s"
    let socket = ListenSocket(name: "s", address: .unix(path))
    var first: Listener? = try Listener.open(socket)
    #expect(failure(socket)?.code == EADDRINUSE)
    // As after kill -9, the file stays.
    first = nil
    withExtendedLifetime(first) {}
    #expect(access(path, F_OK) == 0)
    let second = try opened(socket)
    var status = stat()
    #expect(lstat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    second.removeFile()
    #expect(access(path, F_OK) != 0)

    _ = try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
    #expect(failure(socket)?.description.contains("is not a socket") == true)
    // The file isn't this listener's any more.
    second.removeFile()
    #expect(access(path, F_OK) == 0)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be two users"))
  func
    `root removes no dead socket for a worker in a directory that the worker's user may replace`()
    throws
  {
    let scratch = try Scratch()
    chmod(scratch.path, 0o755)
    let account = try Account(user: "12345", group: "12345")
    let (theirs, ours) = ("\(scratch.path)/theirs", "\(scratch.path)/ours")
    try #require(mkdir(theirs, 0o755) == 0 && mkdir(ours, 0o700) == 0)
    // A test that runs at the same time and binds a socket changes the umask for a moment.
    try #require(chmod(theirs, 0o755) == 0 && chmod(ours, 0o700) == 0)
    try #require(chown(theirs, 12345, 12345) == 0)
    // This is the dead socket of one of root's daemons.
    _ = try UnixSocket.bound(to: "\(ours)/s", .stream)
    try #require(symlink(ours, "\(theirs)/link") == 0)
    let led = ListenSocket(name: "s", address: .unix("\(theirs)/link/s"))
    #expect(failure(led, account) != nil)
    #expect(access("\(ours)/s", F_OK) == 0)

    // In the user's own directory everything is done with the user's rights.
    let own = ListenSocket(name: "s", address: .unix("\(theirs)/s"))
    // The second finds the dead socket of the first.
    for _ in 0..<2 { _ = try opened(own, for: account) }
    var status = stat()
    #expect(lstat("\(theirs)/s", &status) == 0 && status.st_uid == 12345)
    let last = try opened(own, for: account)
    try #require(rename("\(theirs)/s", "\(theirs)/moved") == 0)
    try #require(symlink("\(ours)/s", "\(theirs)/s") == 0)
    last.removeFile()
    #expect(access("\(ours)/s", F_OK) == 0)
  }

  @Test func `Listening sockets are found again in their worker, or in one thread of it`() throws {
    let scratch = try Scratch()
    let sockets = [
      ListenSocket(name: "a", address: .unix("\(scratch.path)/s")),
      ListenSocket(name: "b", address: .unix("@dormouse-test-\(getpid())")),
    ]
    var plan = LaunchPlan(
      name: "w", command: ["sleep", "60"], directory: "/", environment: ["PATH": "/usr/bin:/bin"],
      logPath: "\(scratch.path)/log")
    plan.listeners = try sockets.map { try Listener.open($0) }
    let worker = try WorkerProcess.launch(plan)
    defer {
      try? worker.killAll()
      _ = try? pollDescriptor(worker.pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
      _ = try? worker.reap()
    }
    let listeners = Listener.recover(sockets.reversed(), from: try worker.tree())
    #expect(Set(listeners.map(\.socket)) == Set(sockets))
    let other = ListenSocket(name: "a", address: .unix("\(scratch.path)/other"))
    #expect(Listener.recover([other], from: try worker.tree()).isEmpty)

    // In a killed daemon that can't end, only threads have the sockets.
    let thread = worker.identity.pid
    // Linux before 6.9 has no descriptor of a thread.
    guard (try? Descriptor.pidfd(ofThread: thread)) != nil else { return }
    #expect(
      Set(Listener.recover(sockets, fromThreads: [thread]).map(\.socket)) == Set(sockets))
    #expect(Listener.recover([other], fromThreads: [thread]).isEmpty)
  }

  @Test func `A process that runs or has ended isn't taken for a killed one that can't end`() {
    #expect(!KilledProcesses.remainingThreads().contains(getpid()))
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be two users"))
  func `A socket belongs to its worker's user, also in a directory where only root may write`()
    throws
  {
    let scratch = try Scratch()
    let account = try Account(user: "65534", group: "65534")
    // Any user may write to /tmp, but not to a directory of root's below it.
    let inOurs = ListenSocket(name: "s", address: .unix("/run/dormouse-test-\(getpid()).sock"))
    let listener = try Listener.open(inOurs, for: account, isForGroup: true)
    defer { listener.removeFile() }
    var status = stat()
    guard case .unix(let path) = inOurs.address else { return }
    #expect(lstat(path, &status) == 0 && status.st_uid == 65534)
    #expect(status.st_mode & 0o777 == 0o660)
    // Below this directory other users may replace files.
    let open = "\(scratch.path)/open"
    try #require(mkdir(open, 0o700) == 0 && chmod(open, 0o777) == 0)
    try #require(mkdir("\(open)/ours", 0o700) == 0)
    #expect(
      failure(ListenSocket(name: "s", address: .unix("\(open)/ours/s")), account)?.code == EACCES)
  }

  @Test
  func `A descriptor number that the listening sockets take can't be that of the notification`()
    throws
  {
    var plan = LaunchPlan(
      name: "w", command: ["sh"], directory: "/", environment: [:], logPath: "/dev/null")
    plan.listeners = [
      try Listener.open(ListenSocket(name: "b", address: .unix("@dormouse-test2-\(getpid())")))
    ]
    plan.readinessChannel = try ReadinessChannel(number: 3)
    let error = #expect(throws: LaunchError.self) { _ = try WorkerProcess.launch(plan) }
    #expect(error?.description.contains("choose 4 or more") == true)
  }
}
