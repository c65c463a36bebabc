import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The descriptors and records of the standby pager.
@Suite(.serialized)
struct StandbyTests {
  @Test("Announcements of 1000 workers cost no descriptors, and ended ones are removed")
  func announcements() throws {
    let before = try listDirectory("/proc/self/fd").count
    var resumes = AnnouncedResumes()
    for number in 0..<1000 {
      let image = "/images/\(number)"
      resumes.parse(Array("w\(number)\t\(getpid())\t1\t/sys/fs/cgroup\t\(image)\n".utf8))
    }
    #expect(resumes.announced.count == 1000)
    // The limit allows for other tests of this process: some hundred descriptors, and not two
    // thousand.
    #expect(try listDirectory("/proc/self/fd").count < before + 500)
    for number in 0..<1000 {
      let line = try #require(StandbyPager.endLine(image: "/images/\(number)"))
      resumes.parse(Array(line.utf8))
    }
    #expect(resumes.announced.isEmpty)
  }

  @Test("Announcements to a pager that reads nothing are lost whole, and the others stay whole")
  func fullQueue() throws {
    let (daemon, pager) = try Descriptor.socketPair(.packets)
    let long = String(repeating: "x", count: 4000)
    var sent = 0
    for number in 0..<1000 {
      let line = "w\t\(getpid())\t1\t/sys/fs/cgroup\t/\(long)/\(number)\n"
      if daemon.send(Array(line.utf8), waits: false) > 0 { sent += 1 }
    }
    #expect(sent > 0 && sent < 1000)
    var resumes = AnnouncedResumes()
    for _ in 0..<sent { resumes.parse(try pager.read(upTo: 16384)) }
    #expect(resumes.announced.count == sent)
    resumes.parse(Array("w\t1\t1\t/group\t/cut".utf8))
    #expect(resumes.announced.count == sent, "no end of the line")
  }

  @Test("A standby pager that doesn't read a retraction is ended: it could wake the worker later")
  func lostRetraction() throws {
    let connection = try StandbyPagerConnection(command: ["/bin/sleep", "1000"])
    defer { reap(connection.process.pid) }
    let image = "/" + String(repeating: "x", count: 4000)
    for _ in 0..<1000 where !connection.process.identity.hasEnded {
      connection.retract(image: image)
    }
    #expect(try eventually { connection.process.identity.hasEnded })
  }

  @Test func `A standby pager that reads no announcements is ended, so that another one gets them`()
    throws
  {
    let connection = try StandbyPagerConnection(command: ["/bin/sleep", "1000"])
    defer { reap(connection.process.pid) }
    let target = HibernationTarget(name: "web", root: connection.process.identity, cgroup: nil)
    let image = "/" + String(repeating: "x", count: 4000)
    let userfault = try Descriptor.open("/dev/null")
    for _ in 0..<1000 where !connection.process.identity.hasEnded {
      connection.announce(target, image: image, keeping: [userfault])
    }
    #expect(try eventually { connection.process.identity.hasEnded })
  }

  @Test(
    "A resume is announced before the worker runs, and retracted when all pages are filled",
    .needsUserfaults)
  func announced() throws {
    let file = Fixture.imagePath()
    let service = HibernationService()
    service.set(try StandbyPagerConnection(command: ["/bin/sh", "-c", "cat > \(file)"]))
    let victim = try Victim(ready: "churn", "2", "4", "64", parking: .frozen)
    let path = Fixture.imagePath()
    try victim.sleep(service, at: path, restore: .lazy)
    let target = victim.target
    try service.resume(target, from: RestingImage(path: path, .lazy(learns: true)))
    try service.awaitFill(of: target.name)
    let deadline = Deadline(in: .seconds(60))
    var lines: [Substring] = []
    while lines.count < 2, !deadline.hasPassed {
      lines = ((try? readText(file)) ?? "").split(separator: "\n")
      usleep(2000)
    }
    try #require(lines.count == 2)
    #expect(lines[0].hasPrefix("\(target.name)\t") && lines[0].hasSuffix("\t\(path)"))
    #expect(lines[1] == path)
  }
}
