import Testing

@testable import Control

@Suite struct Paths {
  private func paths(
    _ environment: [String: String] = [:], user: UInt32 = 1000, executable: String? = nil,
    directories: Set<String> = [], otherHome: String? = nil
  ) -> DefaultPaths {
    DefaultPaths(
      environment: environment, userID: user,
      home: otherHome ?? (user == 0 ? "/root" : "/home/ada"),
      hasOtherHome: otherHome != nil,
      executableDirectory: executable, isDirectory: { directories.contains($0) })
  }

  @Test
  func `The socket's path comes from the option, then from the variables, then from the user`() {
    let all = ["DORMOUSE_CONTROL_SOCKET": "/s", "XDG_RUNTIME_DIR": "/run/user/1000"]
    #expect(paths(all).socket(option: "/o") == "/o")
    #expect(paths(all).socket() == "/s")
    #expect(
      paths(["XDG_RUNTIME_DIR": "/run/user/1000"]).socket()
        == "/run/user/1000/dormouse/control.sock")
    #expect(paths().socket() == "/tmp/dormouse-1000/control.sock")
    #expect(paths(user: 0).socket() == "/run/dormouse/control.sock")
    #expect(
      paths(["XDG_RUNTIME_DIR": "/run/me"], user: 0).socket() == "/run/me/dormouse/control.sock")
  }

  @Test(arguments: ["/run/user/0", "/run/user/1000/"])
  func `Root in a login session uses the socket of the machine's daemon`(directory: String) {
    let session = paths(["XDG_RUNTIME_DIR": directory], user: 0)
    #expect(session.socket() == "/run/dormouse/control.sock")
    #expect(session.runtimeDirectory == "/run/dormouse")
  }

  @Test func `Each other home of a user has a socket of its own`() {
    let all = [nil, "/tmp/a", "/tmp/b"].map { paths(otherHome: $0).socket() }
    #expect(Set(all).count == 3 && all.allSatisfy { $0.hasPrefix("/tmp/dormouse-1000") }, "\(all)")
    #expect(paths(otherHome: "/tmp/a").socket() == all[1])
    let run = ["XDG_RUNTIME_DIR": "/run/user/1000"]
    #expect(paths(run, otherHome: "/tmp/a").socket() == "/run/user/1000/dormouse/control.sock")
    #expect(paths(user: 0, otherHome: "/tmp/a").socket() == "/run/dormouse/control.sock")
  }

  @Test func `Empty and relative variables count as not set`() {
    let odd = ["DORMOUSE_CONTROL_SOCKET": "", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": ""]
    #expect(paths(odd).socket(option: "") == "/tmp/dormouse-1000/control.sock")
    #expect(paths(odd).stateDirectory == "/home/ada/.local/state/dormouse")
    #expect(paths(["XDG_CONFIG_HOME": "/c/"]).configuration == "/c/dormouse/dormouse.yaml")
  }

  @Test func `Paths of state and configuration follow XDG, and are system-wide for root`() {
    #expect(paths(["XDG_STATE_HOME": "/x"]).stateDirectory == "/x/dormouse")
    #expect(paths(user: 0).stateDirectory == "/var/lib/dormouse")
    #expect(paths().configuration == "/home/ada/.config/dormouse/dormouse.yaml")
    #expect(paths(user: 0).configuration == "/etc/dormouse/dormouse.yaml")
    #expect(
      paths(["XDG_CONFIG_HOME": "/c"], user: 0).configuration == "/c/dormouse/dormouse.yaml")
  }

  @Test
  func
    `Policies are searched for in the directories of user, installation and source tree`()
  {
    let built = paths(
      executable: "/src/.build/x86_64-unknown-linux-gnu/release",
      directories: ["/src/Policies", "/Policies"])
    #expect(
      built.policyDirectories == [
        "/home/ada/.config/dormouse/policies",
        "/src/.build/x86_64-unknown-linux-gnu/share/dormouse/policies",
        "/src/Policies",
      ])
    #expect(
      paths(user: 0, executable: "/usr/bin").policyDirectories == [
        "/etc/dormouse/policies", "/usr/share/dormouse/policies",
      ])
    #expect(paths().policyDirectories == ["/home/ada/.config/dormouse/policies"])
  }

  @Test func `The search for policies upwards from the executable ends after five levels`() {
    let near = paths(executable: "/1/2/3/4/5/6", directories: ["/1/Policies"])
    #expect(near.policyDirectories.last == "/1/Policies")
    let far = paths(executable: "/1/2/3/4/5/6", directories: ["/Policies"])
    #expect(far.policyDirectories.last == "/1/2/3/4/5/share/dormouse/policies")
  }

  @Test func `A test process finds the source tree's directory of policies or works without it`() {
    let here = DefaultPaths.ofThisProcess()
    #expect(here.policyDirectories.count >= 2)
    #expect(here.stateDirectory.hasPrefix("/"))
    #expect(here.configuration.hasSuffix("/dormouse/dormouse.yaml"))
  }
}
