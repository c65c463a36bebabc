import Glibc

extension ProcessStatus {
  public static func ofThisProcess() throws(SystemCallError) -> ProcessStatus {
    try read(getpid())
  }

  /// The effective capabilities by their names in capabilities(7), in lower case and without
  /// `CAP_`. A capability that has no name here is `cap_` and its number.
  public var capabilityNames: [String] {
    (0..<64).filter { effectiveCapabilities >> UInt64($0) & 1 == 1 }.map {
      $0 < Self.names.count ? Self.names[$0] : "cap_\($0)"
    }
  }

  /// The names are in the order of linux/capability.h.
  private static let names = [
    "chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid",
    "setpcap", "linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw",
    "ipc_lock", "ipc_owner", "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct",
    "sys_admin", "sys_boot", "sys_nice", "sys_resource", "sys_time", "sys_tty_config", "mknod",
    "lease", "audit_write", "audit_control", "setfcap", "mac_override", "mac_admin", "syslog",
    "wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf", "checkpoint_restore",
  ]
}
