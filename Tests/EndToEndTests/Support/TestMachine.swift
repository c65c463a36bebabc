import Glibc
import Linux
import TestSupport

/// The properties of the machine that the tests run on.
enum TestMachine {
  /// The directory of the repository.
  static let root = {
    var path = #filePath[...]
    for _ in 0..<4 { path = path[..<(path.lastIndex(of: "/") ?? path.startIndex)] }
    return String(path)
  }()

  /// The program under test.
  static let executable = built("dormouse")

  /// A product of the package's build, which is in the test bundle's directory.
  static func built(_ name: String) -> String {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &target, target.count)
    let path = String(
      decoding: target[..<max(0, length)].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let beside = path[..<(path.lastIndex(of: "/") ?? path.startIndex)] + "/\(name)"
    return access(String(beside), X_OK) == 0 ? String(beside) : "\(root)/.build/debug/\(name)"
  }

  /// The system's, since any user may run that one.
  static let python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3"

  static func fixture(_ name: String) -> String { "\(root)/Tests/Fixtures/\(name)" }
  static func policy(_ name: String) -> String { "\(root)/Policies/\(name).yaml" }

  /// Whether a program is installed.
  static func has(_ program: String) -> Bool {
    ["/usr/bin", "/bin", "/usr/local/bin"].contains { access("\($0)/\(program)", X_OK) == 0 }
  }

  static let isRoot = getuid() == 0

  /// The id of a user without rights.
  static let unprivilegedUser: UInt32 = 65534
  static let canBecomeNobody = isRoot && access("/usr/bin/setpriv", X_OK) == 0

  /// The beginning of a command that the user without rights runs.
  static let becomingNobody = [
    "setpriv", "--reuid", "\(unprivilegedUser)", "--regid", "\(unprivilegedUser)", "--clear-groups",
  ]

  /// Gives the directory, with copies of the program under test and of a fixture, to the user
  /// without rights. That user may not be able to read the repository.
  ///
  /// - Returns: the command with which that user runs the program.
  static func asNobody(_ scratch: Scratch, with name: String) throws -> [String] {
    let outcome = try Command(arguments: ["cp", executable, fixture(name), scratch.path])
      .run(in: scratch)
    guard outcome.code == 0 else { throw TestFailure("cp: \(outcome)") }
    let copy = "\(scratch.path)/dormouse"
    chmod(copy, 0o755)
    chown(scratch.path, unprivilegedUser, unprivilegedUser)
    return becomingNobody + [copy]
  }

  /// A cgroup for workers can be made here.
  static let hasCgroups = {
    guard let root = try? CgroupRoot.detect(name: "dormouse-e2e-probe-\(getpid())") else {
      return false
    }
    root.remove()
    return true
  }()
}

/// Whether the process has ended. A zombie counts as ended: an orphan stays a zombie until this
/// machine's init waits for it, which Dormouse can't influence.
func hasEnded(_ pid: Int32) -> Bool {
  guard let stat = try? ProcessStat.read(pid) else { return true }
  return stat.isEnded
}
