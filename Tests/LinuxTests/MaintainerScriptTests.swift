import Glibc
import Linux
import TestSupport
import Testing

/// The package's scripts, run with commands of the test's own in the place of those that they call,
/// and with a directory of the test's own as `/run`. `Tests/Machines` installs the package.
@Suite("The scripts of the Debian package") struct MaintainerScriptTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch(["run/systemd/system/empty": "", "calls": ""])
    // Each records how it is called, and what it would find in the environment.
    try command(
      "dormouse",
      "echo \"dormouse $1 ${XDG_RUNTIME_DIR-none} ${DORMOUSE_CONTROL_SOCKET-none}\" >> CALLS")
    for name in ["getent", "groupadd", "deb-systemd-helper", "deb-systemd-invoke"] {
      try command(name, ":")
    }
  }

  private func command(_ name: String, _ script: String) throws {
    let calls = "\(scratch.path)/calls"
    let path = try scratch.write(
      "bin/\(name)", "#!/bin/sh\n" + script.replacing("CALLS", with: calls) + "\n")
    chmod(path, 0o755)
  }

  /// Runs a script of the package, and returns its exit status as text.
  private func run(_ name: String, _ arguments: String) throws -> String {
    let text = try SourceTree.text("Packaging/debian/\(name)")
      .replacing("/run/", with: "\(scratch.path)/run/")
      .replacing("/usr/bin/dormouse", with: "\(scratch.path)/bin/dormouse")
    let path = try scratch.write(name, text)
    return try output(
      of: "/bin/sh \(path) \(arguments) >/dev/null; echo status $?",
      environment: [
        "PATH": "\(scratch.path)/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR": "/run/user/0",
        "DORMOUSE_CONTROL_SOCKET": "/other/control.sock",
      ])
  }

  private var calls: [String] {
    get throws {
      try readText("\(scratch.path)/calls").split(separator: "\n").map(String.init)
    }
  }

  @Test func `A removal wakes the workers of the machine's daemon from any session of root`() throws
  {
    #expect(try run("prerm", "remove") == "status 0\n")
    #expect(try calls == ["dormouse shutdown none none", "dormouse recover none none"])
  }

  @Test func `A removal succeeds although a user with a daemon isn't known any more`() throws {
    let socket = try scratch.write("run/user/4711/dormouse/control.sock", "")
    let listener = try UnixSocket.bound(to: socket, .stream)
    #expect(try run("prerm", "remove") == "status 0\n")
    #expect(try calls.count == 2)
    withExtendedLifetime(listener) {}
  }

  @Test func `A removal gives up on a user whose recovery was ended after its time`() throws {
    let socket = try scratch.write("run/user/4711/dormouse/control.sock", "")
    let listener = try UnixSocket.bound(to: socket, .stream)
    try command("getent", "echo ada:x:4711:4711::/home/ada:/bin/sh")
    try command("timeout", "echo timeout $* >> CALLS; exit 124")
    #expect(try run("prerm", "remove") == "status 0\n")
    let limited = try calls.filter { $0.hasPrefix("timeout") }
    #expect(limited.count == 2, "\(limited)")
    // Without a terminal, nothing that controls the user's process can write to root's.
    #expect(limited.allSatisfy { $0.contains(" setsid -w setpriv --reuid=4711 ") }, "\(limited)")
    withExtendedLifetime(listener) {}
  }

  @Test func `An upgrade signals no other process if the daemon ends while it is asked to`() throws
  {
    try command("dormouse", "exit 1")
    // The daemon is active until its main process is queried. It has none any more.
    try command(
      "systemctl",
      """
      echo "systemctl $*" >> CALLS
      case "$1" in
        show) echo 0 ;;
        is-active) ! grep -q "^systemctl show" CALLS ;;
      esac
      """)
    #expect(try run("postinst", "configure 1.0-1") == "status 0\n")
    // A signal to the script's own process group would have ended the shell that prints this.
    #expect(try calls.last == "systemctl is-active --quiet dormouse.service")
  }
}
