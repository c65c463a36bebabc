import Control
import Glibc

/// Where this process stands.
func currentDirectory() throws(FileError) -> String {
  guard let path = getcwd(nil, 0) else {
    throw FileError(operation: "finding", path: "the working directory", errno: errno)
  }
  defer { free(path) }
  return String(cString: path)
}
