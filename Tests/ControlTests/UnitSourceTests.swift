import Glibc
import PolicyFile
import TestSupport
import Testing

@testable import dormouse

@Suite("Units of systemd that are found by name") struct UnitSourceTests {
  @Test func `An alias has the drop-ins of the unit's own name, too, in the order of their names`()
    throws
  {
    let scratch = try Scratch([
      "lib/ssh.service": "main", "lib/ssh.service.d/b.conf": "hidden",
      "etc/ssh.service.d/b.conf": "override", "etc/sshd.service.d/a.conf": "of the alias",
      "etc/other.service.d/c.conf": "of another unit",
    ])
    let etc = "\(scratch.path)/etc"
    let lib = "\(scratch.path)/lib"
    #expect(symlink("\(lib)/ssh.service", "\(etc)/sshd.service") == 0)
    let source = try UnitSource(named: "sshd", in: [etc, lib])
    #expect(source.name == "sshd.service")
    #expect(source.files.map(\.text) == ["main", "of the alias", "override"])
    let real = try UnitSource(named: "ssh.service", in: [etc, lib])
    #expect(real.files.map(\.text) == ["main", "override"])
  }
}
