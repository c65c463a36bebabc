import Glibc

/// The freezer of cgroup version 1, which Dormouse finds and leaves alone. Whom it freezes waits in the
/// kernel like somebody who waits for a disk: SIGKILL doesn't end it, and a tracer can't stop it,
/// before it is thawed. A daemon that is killed would leave workers that nobody can end who doesn't
/// know of the group; and a hibernation couldn't reach its worker. A stopped process is killed by
/// SIGKILL and stopped for a tracer, so SIGSTOP is the lesser evil where there is no version 2.
public enum OldFreezer {
  /// Where it is mounted.
  public static func place() -> String? {
    let mounts = (try? Mount.all()) ?? []
    return mounts.first { mount in
      mount.type == "cgroup" && access("\(mount.point)/cgroup.procs", F_OK) == 0
        && isFreezer(mount.point)
    }?.point
  }

  /// The root of a hierarchy has no `freezer.state`; `/proc/self/cgroup` names hierarchies, and mounts
  /// are named after them by every init there is.
  private static func isFreezer(_ point: String) -> Bool {
    let names = point.split(separator: "/").last?.split(separator: ",") ?? []
    return names.contains("freezer")
  }
}
