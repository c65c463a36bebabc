import Glibc

/// The freezer of cgroup version 1, which Dormouse detects and doesn't use. A process that it
/// freezes is in uninterruptible sleep, as if it waited for a disk: until it is thawed, SIGKILL
/// doesn't end it, and a tracer can't stop it. A killed daemon would leave workers that can't be
/// ended without knowledge of the group, and a hibernation couldn't reach its worker. SIGKILL ends
/// a stopped process, and a tracer can stop it, so SIGSTOP is better if there is no version 2.
public enum OldFreezer {
  /// The directory at which the freezer is mounted; nil if it isn't.
  public static func mountPoint() -> String? {
    let mounts = (try? Mount.all()) ?? []
    return mounts.first { mount in
      mount.type == "cgroup" && access("\(mount.point)/cgroup.procs", F_OK) == 0
        && isFreezer(mount.point)
    }?.point
  }

  /// Whether a mount is the freezer's. The root of a hierarchy has no `freezer.state`.
  /// `/proc/self/cgroup` names the hierarchies, and every init system names the mounts after them.
  private static func isFreezer(_ point: String) -> Bool {
    let names = point.split(separator: "/").last?.split(separator: ",") ?? []
    return names.contains("freezer")
  }
}
