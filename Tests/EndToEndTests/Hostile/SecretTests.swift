import CLinux
import Control
import Glibc
import Linux
import TestSupport
import Testing

extension TestMachine {
  /// keyctl(2) may be forbidden (containers), and its numbers are this architecture's.
  static let hasKeyring = {
    let name = "dormouse:test:\(getpid())"
    defer { _ = clinux_key_remove(name) }
    return clinux_key_add(name, "key", 3) == 0
  }()

  /// Encrypted images need a key and OpenSSL.
  static let canEncrypt =
    hasKeyring
    && ["libcrypto.so.3", "libcrypto.so.1.1"].contains { (name: String) in
      dlopen(name, RTLD_LAZY) != nil
    }
}

@Suite("Secrets in images") struct SecretTests {
  private static let encrypted = """
    policy_overrides:
      background: { suspend_after: 1h }
      hibernate: { after: never, cooldown: 0s, max_footprint: 32MB, encrypt: true }
    workers:

    """

  @Test func `Only the daemon's user can read images and their directory`() throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry())
    try web.waitUntilReady(under: daemon)
    try daemon.done("hibernate", "web")
    #expect(try mode("\(daemon.state)") == 0o700)
    #expect(try mode("\(daemon.state)/images") == 0o700)
    #expect(try mode("\(daemon.state)/images/web.image") == 0o600)
    // The directory's mode is widened while no daemon runs.
    chmod("\(daemon.state)/images", 0o755)
    try daemon.restartAfterCrash()
    #expect(try mode("\(daemon.state)/images") == 0o700)
    try daemon.done("foreground", "web")
    #expect(try listDirectory("\(daemon.state)/images").isEmpty)
  }

  @Test(
    "The next daemon can read encrypted images, also from another login session",
    .enabled(if: TestMachine.canEncrypt, "there is no keyring, or no libcrypto (Debian: libssl3)"),
    arguments: Nightly.one(of: Setting.available))
  func restart(setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let script = TestMachine.fixture("new_session_keyring.py")
    let daemon = try TestDaemon(
      Self.encrypted + web.entry(setting), setting: setting,
      wrapper: setting == .ordinaryUser ? [] : [TestMachine.python, script])
    let (connection, digest) = try web.answer(under: daemon)
    for _ in 0..<2 {
      try daemon.done("hibernate", "web")
      #expect(try readFile("\(daemon.state)/images/web.image")[10] & 1 == 1, "it is sealed")
      try daemon.restartAfterCrash()
      try daemon.done("foreground", "web")
      #expect(try connection.get("/digest") == digest, "\(daemon.logText)")
    }
    // The daemon that wrote them can read them. The key is removed with the last image.
    try daemon.done("hibernate", "web")
    try daemon.done("foreground", "web")
    #expect(try connection.get("/digest") == digest)
    daemon.stop(timeout: .seconds(60))
    if setting != .ordinaryUser {
      var byte: UInt8 = 0
      let result = clinux_key_read("dormouse:\(daemon.state)/images", &byte, 1)
      #expect(result == -Int64(ENOKEY))
    }
  }

  @Test(
    "A worker whose image's key is missing is terminated and reported, as with a damaged image",
    .enabled(if: TestMachine.canEncrypt, "there is no keyring, or no libcrypto (Debian: libssl3)"),
    arguments: Nightly.one(of: Setting.ofTestUser))
  func keyIsGone(setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(Self.encrypted + web.entry(setting), setting: setting)
    try web.waitUntilReady(under: daemon)
    try daemon.done("hibernate", "web")
    let pid = try #require(try daemon.worker("web").pid)
    try daemon.crash()
    #expect(clinux_key_remove("dormouse:\(daemon.state)/images") == 0)
    try daemon.start()
    try daemon.waitForLogText("its key is not in the kernel's keyring any more")
    #expect(try eventually { hasEnded(pid) })
    #expect(try eventually { try listDirectory("\(daemon.state)/images").isEmpty })
  }

  @Test(
    "Without a keyring no image is written unencrypted; the worker stays suspended with the reason",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func noKeyring(setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(
      Self.encrypted + web.entry(setting), setting: setting,
      wrapper: [TestMachine.python, TestMachine.fixture("without.py"), "248,249,250"])
    try expectNoImage(of: web, under: daemon, "the kernel's keyring can't be used")
  }

  @Test(
    "Without OpenSSL no image is written; the worker stays suspended, and messages say why",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func noLibrary(setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let library = try HiddenLibrary()
    library.hide()
    let daemon = try TestDaemon(
      Self.encrypted + web.entry(setting), setting: setting, wrapper: library.wrapper)
    // The warning is in the log before the first hibernation.
    try daemon.waitForLogText("images can't be encrypted (hibernate.encrypt)")
    let outcome = try expectNoImage(of: web, under: daemon, "can't load OpenSSL's libcrypto.so.3")
    #expect(outcome.error.contains("install OpenSSL 3 (Debian: libssl3)"))
  }

  @discardableResult
  private func expectNoImage(
    of web: WebWorker, under daemon: TestDaemon, _ reason: String
  ) throws -> Outcome {
    let (connection, digest) = try web.answer(under: daemon)
    let outcome = try daemon.verb("hibernate", "web")
    #expect(outcome.code == 1)
    #expect(outcome.error.contains("its image can't be encrypted: \(reason)"))
    #expect(try daemon.worker("web").state == "suspended")
    #expect(try daemon.done("status", "web").contains("can't be encrypted"))
    #expect(try listDirectory("\(daemon.state)/images").isEmpty)
    try daemon.done("foreground", "web")
    #expect(try connection.get("/digest") == digest)
    return outcome
  }

  @Test(
    "A daemon without OpenSSL leaves an encrypted worker asleep; a later one with it resumes it",
    .enabled(if: TestMachine.canEncrypt, "there is no keyring, or no libcrypto (Debian: libssl3)"),
    arguments: Nightly.one(of: Setting.ofTestUser))
  func libraryIsBack(setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let library = try HiddenLibrary()
    let daemon = try TestDaemon(
      Self.encrypted + web.entry(setting), setting: setting, wrapper: library.wrapper)
    let (connection, digest) = try web.answer(under: daemon)
    try daemon.done("hibernate", "web")
    let pid = try #require(try daemon.worker("web").pid)
    try daemon.crash()
    library.hide()
    try daemon.start()
    try daemon.waitForLogText("can't be decrypted: can't load OpenSSL's libcrypto.so.3")
    #expect(!hasEnded(pid))
    #expect(try listDirectory("\(daemon.state)/images") == ["web.image"])
    try daemon.crash()
    library.show()
    try daemon.start()
    try daemon.done("foreground", "web")
    #expect(try connection.get("/digest") == digest, "\(daemon.logText)")
  }

  @Test func `The daemon's OpenSSL doesn't open the file that OPENSSL_CONF names`() throws {
    let scratch = try Scratch()
    // Opening it waits for a writer.
    let pipe = "\(scratch.path)/openssl.cnf"
    #expect(mkfifo(pipe, 0o666) == 0)
    var doctor = Command.dormouse([
      "doctor", "--json", "--state-directory", "\(scratch.path)/state", "--socket",
      "\(scratch.path)/s",
    ])
    doctor.environment["OPENSSL_CONF"] = pipe
    let outcome = try doctor.run(in: scratch)
    #expect(outcome.output.contains("\"id\":\"libcrypto\""), "\(outcome.error)")
  }

  private func mode(_ path: String) throws -> mode_t {
    var status = stat()
    _ = try systemCall("stat", on: path) { stat(path, &status) }
    return status.st_mode & 0o777
  }
}

/// Makes a daemon find a libcrypto that is no library, from its next start on.
private struct HiddenLibrary {
  private let scratch: Scratch
  private var mark: String { "\(scratch.path)/hidden" }

  init() throws {
    scratch = try Scratch()
    for name in ["libcrypto.so.3", "libcrypto.so.1.1"] { _ = try scratch.write(name, "") }
  }

  func hide() { close(open(mark, O_WRONLY | O_CREAT, 0o600)) }
  func show() { unlink(mark) }

  /// For `TestDaemon`. The workers inherit the variable, too, and need no libcrypto.
  var wrapper: [String] {
    let code =
      #"if [ -e "$1/hidden" ]; then "#
      + #"export LD_LIBRARY_PATH="$1${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; fi; "#
      + #"shift; exec "$@""#
    return ["/bin/sh", "-c", code, "sh", scratch.path]
  }
}
