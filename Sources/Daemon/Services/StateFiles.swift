import Linux

/// Replaces small files of the daemon, each as a whole. Tests have a fake.
protocol StateFileWriter {
  /// Returns at once. `then` is called later on the loop, with the reason if the file couldn't be
  /// replaced. If the disk doesn't respond, it isn't called. Files are replaced in the order of the
  /// calls.
  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void)
}

/// Writes the files on the thread of `DiskQueue`. Belongs to the loop's thread.
struct StateFiles: StateFileWriter {
  let loop: LoopReturn
  let disk: DiskQueue

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
