import Glibc
import Linux

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
}

/// Nothing of the process runs any more. A zombie has ended: an orphan stays one for as long as this
/// machine's init takes its time, which isn't Dormouse's.
func hasEnded(_ pid: Int32) -> Bool {
  guard let stat = try? ProcessStat.read(pid) else { return true }
  return stat.isEnded
}
