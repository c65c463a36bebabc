import Glibc

/// Whether a path leads through directories only in which nobody but root, or we, can put anything.
public enum TrustedPath {
  public static func isOurs(directoryOf path: String) -> Bool {
    guard let slash = path.lastIndex(of: "/") else { return false }
    guard let resolved = realpath(slash == path.startIndex ? "/" : String(path[..<slash]), nil)
    else { return false }
    defer { free(resolved) }
    var directory = String(cString: resolved)
    while true {
      var status = stat()
      let isRoot = directory.isEmpty || directory == "/"
      guard lstat(isRoot ? "/" : directory, &status) == 0,
        status.st_uid == 0 || status.st_uid == geteuid(),
        status.st_mode & (S_IWGRP | S_IWOTH) == 0
      else { return false }
      if isRoot { return true }
      directory = String(directory[..<(directory.lastIndex(of: "/") ?? directory.startIndex)])
    }
  }
}
