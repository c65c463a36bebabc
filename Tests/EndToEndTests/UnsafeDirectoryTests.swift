import Glibc
import Linux
import Testing

@Suite("Directories that somebody else prepared") struct UnsafeDirectoryTests {
  @Test("A state directory to which others may write is refused")
  func sharedState() throws {
    let daemon = try TestDaemon("workers: {}\n", starts: false)
    #expect(mkdir(daemon.state, 0o700) == 0 && chmod(daemon.state, 0o777) == 0)
    #expect(try daemon.launch().wait(.seconds(20)) != 0)
    #expect(daemon.words.contains("others may write to it"))
    chmod(daemon.state, 0o755)
    // Its parts are made private, whoever made them and however.
    #expect(mkdir("\(daemon.state)/images", 0o755) == 0)
    try daemon.start()
    var status = stat()
    #expect(stat("\(daemon.state)/images", &status) == 0)
    #expect(status.st_mode & 0o777 == 0o700)
  }

  @Test(
    "A socket's directory that belongs to another user is refused",
    .enabled(if: Surroundings.canBecomeNobody, "only root can be two users"))
  func foreignSocketDirectory() throws {
    let daemon = try TestDaemon("workers: {}\n", setting: .ordinaryUser, starts: false)
    let directory = "\(daemon.scratch.path)/planted"
    #expect(mkdir(directory, 0o700) == 0 && chmod(directory, 0o755) == 0)
    #expect(chown(directory, 12345, 12345) == 0)
    let process = try daemon.launch([
      "--config", daemon.configuration, "--socket", "\(directory)/control.sock",
      "--state-directory", daemon.state,
    ])
    #expect(try process.wait(.seconds(20)) != 0)
    #expect(daemon.words.contains("it belongs to user 12345"), "\(daemon.words)")
  }
}
