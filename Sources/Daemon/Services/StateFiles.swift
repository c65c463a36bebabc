import Linux

/// Small files of the daemon's that are replaced as a whole. Tests provide their own.
protocol StateFileWriter: AnyObject {
  /// Returns at once. `then` is called on the loop, later, with the reason if the file couldn't be replaced;
  /// on a disk that doesn't answer it isn't called. Files are replaced in the order of the calls.
  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void)
}

/// Writes them on the disk's thread. Belongs to the loop's thread.
final class StateFiles: StateFileWriter {
  private let disk: DiskQueue
  private let loop: LoopReturn

  init(_ loop: LoopReturn, _ disk: DiskQueue) {
    self.loop = loop
    self.disk = disk
  }

  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void) {
    let done: @Sendable (String?) -> Void = loop.callback(then)
    disk.submit {
      done(
        failureText {
          try StateFile.replace(path, with: Array(text.utf8), durability: .data)
        })
    }
  }
}
