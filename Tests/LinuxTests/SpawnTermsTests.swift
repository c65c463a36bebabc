import Glibc
import Testing

@testable import Linux

@Suite struct SpawnTermsTests {
  @Test func `A new process has exactly the placed descriptors, even with exchanged numbers`()
    throws
  {
    let paths = ["/proc/self/status", "/proc/self/stat", "/proc/self/maps"]
    let files = try paths.map { try Descriptor.open($0) }
    var terms = SpawnTerms()
    // The numbers are exchanged: the descriptor that is moved first must not replace the next one.
    terms.placed = [
      .init(files[0].raw, at: files[1].raw + 3), .init(files[1].raw, at: files[0].raw + 3),
      .init(files[2].raw, at: 200),
    ]
    let numbers = Set(terms.placed.map(\.number))
    let listed = try output(of: "ls /proc/$$/fd", terms)
    let open = Set(listed.split(separator: "\n").compactMap { Int32($0) })
    #expect(numbers.isSubset(of: open), "\(listed)")
    // Shells use 10 and 255 themselves.
    #expect(open.subtracting(numbers).isSubset(of: [0, 1, 2, 10, 255]), "\(listed)")

    terms = SpawnTerms()
    terms.placed = [.init(files[0].raw, at: files[1].raw), .init(files[1].raw, at: files[0].raw)]
    let names = try output(
      of: "readlink /proc/$$/fd/\(files[0].raw) /proc/$$/fd/\(files[1].raw)", terms)
    #expect(
      names.split(separator: "\n").map { $0.split(separator: "/").last } == ["stat", "status"])
  }

  @Test func `A new process finds its own pid in its environment`() throws {
    var terms = SpawnTerms()
    terms.pidVariables = ["LISTEN_PID", "WATCHDOG_PID"]
    let fields = try output(of: "echo $LISTEN_PID $$ $OTHER", environment: ["OTHER": "x"], terms)
      .split(whereSeparator: \.isWhitespace)
    #expect(fields.count == 3)
    #expect(fields.first == fields.dropFirst().first)
    #expect(fields.last == "x")
  }

  @Test func `A new process's limits are set, and one that can't be set is named`() throws {
    var terms = SpawnTerms()
    terms.limits = [
      .init(name: "`core`", resource: Int32(RLIMIT_CORE.rawValue), soft: 0, hard: 0),
      .init(name: "`nofile`", resource: Int32(RLIMIT_NOFILE.rawValue), soft: 100, hard: 200),
    ]
    #expect(try output(of: "ulimit -n; ulimit -Hn; ulimit -c", terms) == "100\n200\n0\n")

    // The limit is higher than the kernel permits for any process (fs.nr_open).
    terms.limits[1].hard = .max
    let error = #expect(throws: SpawnError.self) { _ = try output(of: ":", terms) }
    #expect(error?.step == .limit)
    #expect(error?.description.contains("its limit `nofile` is over") == true)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be two users"))
  func `A process that is started as another user has only that user's groups`() throws {
    var terms = SpawnTerms()
    terms.identity = .init(user: 65534, group: 65534, groups: [65534, 12345])
    let text = try output(of: "id -u; id -g; id -G; grep CapEff /proc/$$/status", terms)
    let lines = text.split(separator: "\n")
    #expect(lines.prefix(2) == ["65534", "65534"])
    #expect(Set(lines[2].split(separator: " ")) == ["65534", "12345"])
    #expect(lines[3].hasSuffix("0000000000000000"))
  }

  @Test(.enabled(if: geteuid() != 0, "root may"))
  func `Only root starts a process as another user`() throws {
    var terms = SpawnTerms()
    terms.identity = .init(user: 0, group: 0, groups: [])
    let error = #expect(throws: SpawnError.self) { _ = try output(of: ":", terms) }
    #expect(error?.step == .identity)
  }
}

@Suite struct AccountTests {
  @Test func `Accounts are found by name and number`() throws {
    let root = try Account(user: "root", group: nil)
    #expect(root.identity.user == 0)
    #expect(root.name == "root")
    #expect(try Account(user: "0", group: nil) == root)
    #expect(try Account(user: "0", group: "4242").identity.group == 4242)
    let account = try Account(user: nil, group: "\(getegid())")
    #expect(account.identity.user == geteuid())
    #expect(account.isOfThisProcess)
  }

  @Test func `The error for a missing account names it`() {
    func text(_ user: String?, _ group: String?) -> String? {
      do throws(AccountError) {
        _ = try Account(user: user, group: group)
        return nil
      } catch { return error.description }
    }
    #expect(text("no-such-user", nil) == "there is no user `no-such-user` on this machine")
    #expect(text("root", "no-such-group") == "there is no group `no-such-group` on this machine")
    #expect(text("3999999999", nil)?.contains("its `group` must be named") == true)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be two users"))
  func `Acting as another account ends with the operation`() throws {
    let unprivileged = try Account(user: "65534", group: "65534")
    let before = getgroups(0, nil)
    let refused = #expect(throws: SystemCallError.self) {
      try unprivileged.acting { () throws(SystemCallError) in _ = try readFile("/etc/shadow") }
    }
    #expect(refused?.code == EACCES)
    #expect(try !readFile("/etc/shadow").isEmpty)
    #expect(getgroups(0, nil) == before)
  }
}
