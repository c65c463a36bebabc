import Glibc
import Linux
import Testing

@Suite("Directories that another user prepared") struct UnsafeDirectoryTests {
  @Test func `The daemon refuses a state directory that other users may write to`() throws {
    let daemon = try TestDaemon("workers: {}\n", starts: false)
    #expect(mkdir(daemon.state, 0o700) == 0 && chmod(daemon.state, 0o777) == 0)
    #expect(try daemon.launch().wait(.seconds(60)) != 0)
    #expect(daemon.logText.contains("other users may write to it"))
    chmod(daemon.state, 0o755)
    // Its subdirectories are made private even if they existed before.
    #expect(mkdir("\(daemon.state)/images", 0o755) == 0)
    try daemon.start()
    var status = stat()
    #expect(stat("\(daemon.state)/images", &status) == 0)
    #expect(status.st_mode & 0o777 == 0o700)
  }

  @Test(
    "A root daemon refuses a state directory or socket below another user's directory",
    .enabled(if: TestMachine.isRoot, "only root's daemon is refused that"),
    arguments: [true, false])
  func foreignAncestor(ofState: Bool) throws {
    let daemon = try TestDaemon(
      "workers: { b: { command: [sleep, '1000'], user: '12345', directory: / } }\n", starts: false)
    let planted = "\(daemon.scratch.path)/planted"
    let victim = "\(daemon.scratch.path)/victim"
    for path in [planted, "\(planted)/ours", victim] { try #require(mkdir(path, 0o700) == 0) }
    _ = try daemon.scratch.write("victim/b.log", "precious")
    chmod(daemon.scratch.path, 0o755)
    chmod(planted, 0o755)
    #expect(chown(planted, 12345, 12345) == 0)
    // The directory's owner could do this at any time.
    if ofState {
      #expect(symlink(victim, "\(planted)/ours/logs") == 0)
    } else {
      #expect(symlink(victim, "\(planted)/ours/control.sock.workers") == 0)
    }
    let directory = "\(planted)/ours"
    let process = try daemon.launch([
      "--config", daemon.configuration, "--socket",
      ofState ? daemon.socket : "\(directory)/control.sock", "--state-directory",
      ofState ? directory : daemon.state,
    ])
    #expect(try process.wait(.seconds(60)) != 0)
    #expect(
      daemon.logText.contains(
        "the directory \(planted) is not safe: user 12345 owns it (mode 0755)"),
      "\(daemon.logText)")
    var status = stat()
    #expect(stat(victim, &status) == 0 && status.st_mode & 0o777 == 0o700)
    #expect(stat("\(victim)/b.log", &status) == 0 && status.st_uid == getuid())
    #expect(try listDirectory(victim) == ["b.log"])
  }
}
