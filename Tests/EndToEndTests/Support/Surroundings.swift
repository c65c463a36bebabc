import Glibc
import Linux

struct TestFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// What the tests find on this machine.
enum Surroundings {
  /// Of the repository.
  static let root = {
    var path = #filePath[...]
    for _ in 0..<4 { path = path[..<(path.lastIndex(of: "/") ?? path.startIndex)] }
    return String(path)
  }()

  /// The program under test.
  static let executable = built("dormouse")

  /// What the package's build has made: beside the test bundle, wherever that was built.
  static func built(_ name: String) -> String {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &target, target.count)
    let own = String(
      decoding: target[..<max(0, length)].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let beside = own[..<(own.lastIndex(of: "/") ?? own.startIndex)] + "/\(name)"
    return access(String(beside), X_OK) == 0 ? String(beside) : "\(root)/.build/debug/\(name)"
  }

  /// The system's, since any user may run that one.
  static let python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3"

  static func fixture(_ name: String) -> String { "\(root)/Tests/Fixtures/\(name)" }
  static func policy(_ name: String) -> String { "\(root)/Policies/\(name).yaml" }

  static let isRoot = getuid() == 0

  /// Somebody with no rights at all.
  static let nobody: UInt32 = 65534
  static let canBecomeNobody = isRoot && access("/usr/bin/setpriv", X_OK) == 0

  /// A cgroup for workers can be made here.
  static let hasCgroups = {
    guard let root = try? CgroupRoot.detect(name: "dormouse-e2e-probe-\(getpid())") else {
      return false
    }
    root.remove()
    return true
  }()

  /// A port of the loopback interface that nobody uses: below those that the kernel gives out by
  /// itself, and never the same twice in one run.
  static func freePort() throws -> UInt16 {
    for _ in 0..<1000 {
      let port = UInt16.random(in: 12_000..<32_000)
      let socket = Descriptor(owning: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
      if withLoopback(port, { bind(socket.raw, $0, $1) }) == 0 { return port }
    }
    throw TestFailure("no free port")
  }

  static func withLoopback(
    _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}

/// Waits for something that has no event. Machines under load are slow; none is so slow.
func eventually(
  within limit: Duration = .seconds(20), _ condition: () throws -> Bool
) throws -> Bool {
  let deadline = Deadline(in: limit)
  while !deadline.hasPassed {
    if try condition() { return true }
    usleep(3000)
  }
  return try condition()
}

/// Nothing of the process runs any more. A zombie has ended: an orphan stays one for as long as this
/// machine's init takes its time, which isn't Dormouse's.
func hasEnded(_ pid: Int32) -> Bool {
  guard let stat = try? ProcessStat.read(pid) else { return true }
  return stat.isEnded
}
