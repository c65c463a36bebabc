/// The keys of a unit that restrict what the service may do (systemd.exec(5)).
enum UnitSandbox {
  static func includes(_ key: String) -> Bool {
    let leads = [
      "Protect", "Private", "Restrict", "SystemCall", "Capability", "ReadOnly", "ReadWrite",
      "Inaccessible", "Lock", "MemoryDeny", "NoNewPrivileges", "NoExec", "ExecPaths", "Device",
      "TemporaryFileSystem", "RemoveIPC", "Bind", "KeyringMode", "ProcSubset", "IPAddress",
      "SecureBits", "AppArmor", "SELinux",
    ]
    return leads.contains { key.hasPrefix($0) }
  }
}
