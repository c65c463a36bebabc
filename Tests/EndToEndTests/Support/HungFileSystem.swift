import Glibc
import Linux
import TestSupport

/// A file system over a directory that answers no request, as one whose server has failed. When
/// this object is released, its requests fail with errors.
final class HungFileSystem {
  private let process: SpawnedProcess
  private let directory: String

  /// Mounting takes root's rights, and /dev/fuse.
  static let isPossible: Bool = {
    guard TestMachine.isRoot, let scratch = try? Scratch() else { return false }
    return (try? HungFileSystem(over: scratch.path)) != nil
  }()

  /// - Parameters:
  ///   - opens: it has a file `file`, which can be opened; closing it is never answered.
  ///   - maps: the file has a page, and can be mapped (`locked_memory.py`).
  init(over directory: String, opens: Bool = false, maps: Bool = false) throws {
    self.directory = directory
    let scratch = try Scratch()
    let said = "\(scratch.path)/said"
    process = try Command(
      arguments: [TestMachine.python, TestMachine.fixture("hung_fuse.py")]
        + (maps ? ["--maps"] : opens ? ["--opens"] : []) + [directory]
    ).start(output: said, error: said)
    let isMounted = try eventually { [process] in
      let hasEnded = try pollDescriptor(process.pidfd.raw, for: POLLIN, until: Deadline(in: .zero))
      return try hasEnded || readText(said).contains("\n")
    }
    guard isMounted, try readText(said) == "mounted\n" else {
      _ = try? process.wait(.zero)
      throw TestFailure("no file system over \(directory): \(try readText(said))")
    }
  }

  /// Requests that wait for the file system fail with an error.
  func end() {
    kill(process.pid, SIGTERM)
    _ = try? process.wait(.seconds(5))
    umount2(directory, Int32(MNT_DETACH))
  }

  deinit { end() }
}
