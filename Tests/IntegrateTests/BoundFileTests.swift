import Glibc
import TestSupport
import Testing

@testable import Integrate

@Suite("A host's file that is a mount itself") struct BoundFileTests {
  /// Containers often get `~/.claude.json` alone from the machine. No file can get its name then.
  @Test(
    "It stays as it is, and no other program is blamed for that",
    .enabled(if: geteuid() == 0, "mounting a small file system takes root"))
  func bound() throws {
    let text = #"{"mcpServers": {"s": {"command": "sleep", "args": ["700"]}}}"#
    let home = try IntegrateHome([".cursor/mcp.json": text])
    let path = "\(home.scratch.path)/.cursor/mcp.json"
    // The flag is MS_BIND.
    try #require(mount(path, path, nil, 4096, nil) == 0)
    defer { umount2(path, Int32(MNT_DETACH)) }
    #expect(home.change(.cursor).first?.problem?.code == "failed")
    #expect(try home.read(".cursor/mcp.json") == text)
  }
}
