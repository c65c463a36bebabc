import Linux
import TestSupport
import Testing

/// The settings that the shipped units of systemd must contain. `Tests/Machines` runs the units.
@Suite("The shipped units")
struct ShippedUnitTests {
  private static func lines(_ path: String) throws -> [String] {
    try SourceTree.text(path).split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init)
  }

  /// Returns the settings of a unit, without comments.
  private static func unit(_ kind: String) throws -> [String] {
    try lines("Packaging/systemd/\(kind)/dormouse.service").filter { !$0.hasPrefix("#") }
  }

  @Test(
    "The shipped units wake all workers only if systemd doesn't start the daemon again",
    arguments: ["system", "user"])
  func restartsDirectly(kind: String) throws {
    let unit = try Self.unit(kind)
    #expect(unit.contains("OnFailure=dormouse-recover.service"))
    #expect(unit.contains("Restart=on-failure"))
    #expect(unit.contains("RestartMode=direct"))
  }

  @Test func `The service for userfaultfd has one capability and one device, for one group`() throws
  {
    let folder = "Packaging/systemd/system/dormouse-userfault"
    let service = try Self.lines("\(folder).service")
    for setting in [
      "CapabilityBoundingSet=CAP_SYS_PTRACE", "DevicePolicy=closed",
      "DeviceAllow=/dev/userfaultfd rw", "NoNewPrivileges=yes", "ProtectSystem=strict",
      "PrivateNetwork=yes", "RestrictAddressFamilies=AF_UNIX", "MemoryDenyWriteExecute=yes",
    ] {
      #expect(service.contains(setting))
    }
    let socket = try Self.lines("\(folder).socket")
    #expect(socket.contains("SocketMode=0660") && socket.contains("SocketGroup=dormouse"))
    #expect(socket.contains("ListenSequentialPacket=\(UserfaultService.defaultPath)"))
  }

  @Test func `The shipped units are those that docs/systemd.md shows`() throws {
    let page = try Self.lines("docs/systemd.md")
    let start = try #require(page.firstIndex(of: "[Unit]"))
    let end = try #require(page[start...].firstIndex(of: "```"))
    let shown = page[start..<end].filter { !$0.isEmpty }
    let shipped = try Self.unit("user").filter { !$0.isEmpty && !$0.hasPrefix("Documentation=") }
    #expect(shown == shipped)
  }
}
