import CLinux
import Glibc

/// The user and groups that a worker runs as. They are looked up as the machine's own tools do it
/// (nsswitch.conf(5)), which may wait for a name service.
public struct Account: Hashable, Sendable {
  public var identity: SpawnTerms.Identity
  /// The user's name; empty for a number that has no entry.
  public var name: String
  public var home: String
  public var shell: String

  /// - Parameters:
  ///   - user: a name or number; `nil`: the user of this process.
  ///   - group: a name or number; `nil`: the user's.
  public init(user: String?, group: String?) throws(AccountError) {
    let entry = try Entry.find(user)
    let uid: UInt32
    if let entry {
      uid = entry.uid
    } else if let number = user.flatMap(UInt32.init) {
      uid = number
    } else {
      throw user.map { .noUser($0) } ?? .noUser("\(geteuid())")
    }
    guard let gid = try group.map(Self.groupNumber) ?? entry?.gid else {
      throw .noGroup(ofUser: "\(uid)")
    }
    name = entry?.name ?? ""
    home = entry?.home ?? "/"
    shell = entry?.shell ?? "/bin/sh"
    identity = SpawnTerms.Identity(
      user: uid, group: gid, groups: entry.map { Self.groups(of: $0.name, gid) } ?? [gid])
  }

  /// True if the account is that of this process.
  public var isOfThisProcess: Bool { identity.user == geteuid() && identity.group == getegid() }

  /// Performs file operations with the rights of this account, without root's additional rights. It
  /// is meant for paths through directories in which the account could have put links. Only root
  /// may call it. It changes the calling thread only (setfsuid(2)).
  public func acting<Result>(
    _ body: () throws(SystemCallError) -> Result
  ) throws(SystemCallError) -> Result {
    let count = getgroups(0, nil)
    var ours = [gid_t](repeating: 0, count: Int(max(count, 0)))
    let (user, group) = (geteuid(), getegid())
    _ = try systemCall("getgroups") { getgroups(Int32(ours.count), &ours) }
    defer { clinux_act_as(user, group, ours, Int32(ours.count)) }
    let identity = identity
    try shim("setfsuid", on: "user \(identity.user)") {
      clinux_act_as(identity.user, identity.group, identity.groups, Int32(identity.groups.count))
    }
    return try body()
  }

  private static func groupNumber(_ group: String) throws(AccountError) -> UInt32 {
    var entry = Glibc.group()
    var result: UnsafeMutablePointer<Glibc.group>?
    var buffer = [CChar](repeating: 0, count: 1 << 16)
    let code = getgrnam_r(group, &entry, &buffer, buffer.count, &result)
    if result != nil { return entry.gr_gid }
    if let number = UInt32(group) { return number }
    throw code == 0 ? .noSuchGroup(group) : .lookup(group, code)
  }

  private static func groups(of user: String, _ group: UInt32) -> [UInt32] {
    var count: Int32 = 64
    var groups = [gid_t](repeating: 0, count: Int(count))
    while getgrouplist(user, group, &groups, &count) < 0, count <= 65536 {
      // The buffer is too small. `count` may have the number of groups by now.
      count = max(count, Int32(groups.count) * 2)
      groups = [gid_t](repeating: 0, count: Int(count))
    }
    return Array(groups.prefix(Int(max(0, min(count, Int32(groups.count))))))
  }

  /// A line of passwd(5).
  private struct Entry {
    var name: String
    var uid: UInt32
    var gid: UInt32
    var home: String
    var shell: String

    /// Finds the entry of a name or number; `nil`: of the user of this process. It returns nil if
    /// there is no such user.
    static func find(_ user: String?) throws(AccountError) -> Entry? {
      // A name of digits only is looked up as a name first, as chown(1) does.
      var answer = user.map { name in
        query { entry, buffer, result in
          getpwnam_r(name, entry, buffer, bufferSize, result)
        }
      }
      let number = user == nil ? geteuid() : user.flatMap { UInt32($0) }
      if answer?.entry == nil, let number {
        answer = query { entry, buffer, result in
          getpwuid_r(number, entry, buffer, bufferSize, result)
        }
      }
      if let entry = answer?.entry { return entry }
      // The code for an unknown user differs between name services.
      let code = answer?.code ?? 0
      if [0, ENOENT, ESRCH, EBADF, EPERM].contains(code) { return nil }
      throw .lookup(user ?? "\(geteuid())", code)
    }

    /// The size of the buffer for a line of passwd(5), in bytes.
    private static let bufferSize = 1 << 16

    private typealias Lookup = (
      UnsafeMutablePointer<passwd>, UnsafeMutablePointer<CChar>,
      UnsafeMutablePointer<UnsafeMutablePointer<passwd>?>
    ) -> Int32

    private static func query(_ lookup: Lookup) -> (entry: Entry?, code: Int32) {
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: bufferSize) { buffer in
        guard let start = buffer.baseAddress else { return (nil, ENOMEM) }
        var entry = passwd()
        var result: UnsafeMutablePointer<passwd>?
        let code = lookup(&entry, start, &result)
        guard result != nil else { return (nil, code) }
        // The strings are in the buffer, so they are copied here.
        return (
          Entry(
            name: String(cString: entry.pw_name), uid: entry.pw_uid, gid: entry.pw_gid,
            home: String(cString: entry.pw_dir), shell: String(cString: entry.pw_shell)), 0
        )
      }
    }
  }
}

/// The reason why an account can't be found.
public enum AccountError: Error, Hashable, Sendable, CustomStringConvertible {
  case noUser(String)
  case noSuchGroup(String)
  case noGroup(ofUser: String)
  case lookup(String, Int32)

  public var description: String {
    switch self {
    case .noUser(let name): "there is no user `\(name)` on this machine"
    case .noSuchGroup(let name): "there is no group `\(name)` on this machine"
    case .noGroup(let number):
      "user \(number) has no entry on this machine, so its `group` must be named"
    case .lookup(let name, let code):
      "`\(name)` can't be looked up: \(errorText(code))"
    }
  }
}
